// SPDX-License-Identifier: GPL-3.0-or-later
// Dragging in TimelineView: the plan of a drop while the cursor moves, what the overlay shows of it, and
// its one edit at the end. Blocks dragged here and blocks from the tray take the same way.
#include "core/schedule/warmup.h"
#include "gui/timeline/dependencies.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineviewprivate.h"

#include <QAction>
#include <QApplication>
#include <QDragEnterEvent>
#include <QMimeData>
#include <QMouseEvent>
#include <QScrollBar>

namespace pipewright {
namespace {

std::optional<Block> blockOf(const QMimeData* data)
{
    if (!data || !data->hasFormat(QLatin1String(blockMimeType)))
        return std::nullopt;
    return parseBlock(data->data(QLatin1String(blockMimeType)).toStdString());
}

} // namespace

void TimelineView::Private::updateOverlay()
{
    OverlayContent content;
    content.plot = plotRect();
    content.cursor = cursor;
    content.frameTime = overlay->content().frameTime;
    const TimeAxis& axis = view.m_axis;
    const TimelineLayout& from = shown();

    const std::optional<Block> subject = plan && !warmUpDrag && !transferDrag ? std::optional(plan->block)
                                         : drag && drag->moving               ? std::optional(drag->block)
                                                                              : document.selection();
    if (reason && !plan && !(drag && drag->moving)) {
        // The arrows of the chain take the place of the selection's own.
        const auto rectOf = [&](const Block& block) {
            int device = -1;
            const std::optional<LaneBlock> found = findShown(block, &device);
            return found ? blockRect(*found, axis, blockArea(device), scale()) : QRectF();
        };
        const QRectF area = blockArea(reason->device);
        const double left = std::max(axis.xOf(static_cast<double>(reason->start)), axis.left - 8.0);
        const double right = std::min(axis.xOf(static_cast<double>(reason->end)), axis.right() + 8.0);
        content.idle = QRectF(left, area.top(), std::max(1.0, right - left), area.height());
        QRectF next = reason->waiting ? rectOf(*reason->waiting) : QRectF();
        for (const Block& block : reason->chain) {
            const QRectF rect = rectOf(block);
            if (rect.isNull())
                break;
            content.chain.push_back(rect);
            // A block that merely stands before the next one touches it; the outlines say enough.
            if (!next.isNull() && rect.top() != next.top())
                content.arrows.push_back({{rect.right(), rect.center().y()}, {next.left(), next.center().y()}, false});
            next = rect;
        }
    } else if (subject && from.find(*subject)) {
        const Design& design = document.design();
        struct Shown {
            QRectF rect;
            int device = -1;
        };
        const auto shownAt = [&](const Block& block) {
            Shown result;
            const LaneBlock found = *findShown(block, &result.device);
            result.rect = blockRect(found, axis, blockArea(result.device), scale());
            return result;
        };
        const auto connect = [&](const Block& a, const Block& b) {
            const Shown from = shownAt(a), to = shownAt(b);
            if (from.device != to.device) {
                content.arrows.push_back(
                    {{from.rect.right(), from.rect.center().y()}, {to.rect.left(), to.rect.center().y()}, false});
            } else {
                const double inset = 4; // off the corners, so that arrows of neighbours stay apart
                content.arrows.push_back({{from.rect.right() - std::min(inset, from.rect.width() / 2), from.rect.top()},
                                          {to.rect.left() + std::min(inset, to.rect.width() / 2), to.rect.top()},
                                          true});
            }
        };
        const Dependencies dependencies = dependenciesOf(design, from, *subject);
        for (const Block& input : dependencies.inputs)
            connect(input, *subject);
        for (const Block& output : dependencies.outputs)
            connect(*subject, output);
    }
    addReadings(content);
    if (plan && !arriving) {
        content.legal = plan->legal || !plan->request;
        content.title = plan->title;
        content.detail = plan->pending ? tr("working out what it changes …") : plan->detail;
    }
    if (showCrosshair && hovering && !plan && !bandFrom)
        addCrosshair(content);
    if (bandFrom && cursor != *bandFrom)
        content.band = QRectF(QRect(*bandFrom, cursor).normalized());
    addTransferOverlay(content);
    // What comes from the tray hangs at the cursor already.
    const bool fromTray = plan && plan->is<PlaceBlock>() && !drag;
    if (!warmUpDrag && !transferDrag && !fromTray && !arriving && (plan || (drag && drag->moving))) {
        const Block& held = plan ? plan->block : drag->block;
        const int lane = laneAt(cursor.y());
        double width = 32;
        double height = lane >= 0 ? blockArea(lane).height() : lanePitch() - 21;
        OverlayContent::Ghost ghost{{}, held, 0};
        QPointF grab(width / 2, height / 2);
        if (const LaneBlock* block = layout().blockOf(held)) {
            ghost.chunk = block->chunk;
            const QRectF rect = blockRect(*block, axis, blockArea(layout().find(held)->device), scale());
            width = rect.width();
            height = rect.height();
            if (drag)
                grab = drag->grab;
        }
        // The ghost follows the cursor along the lane, lifted a little off it: the block in the lane below is
        // where it will land.
        constexpr double lift = 9;
        const double top = (lane >= 0 ? blockArea(lane).top() : cursor.y() - grab.y()) - lift;
        ghost.rect = QRectF(std::round(cursor.x() - grab.x()), top, width, height);
        content.ghost = ghost;
        if (plan && plan->device >= 0 && !plan->legal && plan->index >= 0) {
            const QRectF area = blockArea(plan->device);
            content.caret = QLineF(cursor.x(), area.top() - 4, cursor.x(), area.bottom() + 4);
        }
    }
    overlay->setContent(std::move(content));
}

// ---- Mouse ----------------------------------------------------------------------------------------

void TimelineView::mousePressEvent(QMouseEvent* event)
{
    const QPoint position = event->position().toPoint();
    if (event->button() == Qt::MiddleButton) {
        d->panFrom = position;
        viewport()->setCursor(Qt::ClosedHandCursor);
        return;
    }
    if (event->button() != Qt::LeftButton)
        return;
    setFocus(Qt::MouseFocusReason);
    if (position.y() < TimelinePainter::rulerHeight && position.x() >= m_axis.left) {
        d->rulerDrag =
            Private::RulerDrag{d->snapped(event->position().x(), position.y(), event->modifiers()), d->range, false};
        return;
    }
    if (d->pressTransfer(position) || d->pressLane(position, event->modifiers()))
        return;
    const std::optional<Block> block = blockAt(position);
    if (const std::optional<int> device = d->warmUpEdgeAt(position); device && event->modifiers() == Qt::NoModifier) {
        // Its last forward is selected, so that numbers and memory are of this device.
        const std::vector<Block>& order = d->document.design().schedule.order[*device];
        d->document.select(order[warmUp(order) - 1]);
        d->warmUpDrag = device;
        return;
    }
    if (block && event->modifiers() & Qt::ControlModifier) {
        d->toggleInGroup(*block);
        return;
    }
    if (block && event->modifiers() & Qt::ShiftModifier) {
        d->extendTo(*block);
        return;
    }
    d->document.select(block);
    d->chosen = Private::Chosen::Block;
    if (block) {
        Private::Drag drag;
        drag.block = *block;
        drag.pressedAt = position;
        drag.grab = event->position() - QRectF(rectOfBlock(*block)).topLeft();
        d->drag = drag;
        return;
    }
    if (d->plotRect().contains(position))
        d->bandFrom = d->cursor = position;
}

std::optional<TimelineView::Private::Idle> TimelineView::Private::idleAt(QPoint position) const
{
    const int lane = laneAt(position.y());
    if (lane < 0 || !plotRect().contains(position))
        return std::nullopt;
    const Lane& filled = shown().lanes()[lane];
    const std::vector<LaneBlock>& blocks = filled.blocks();
    const std::size_t next = filled.firstEndingAfter(view.m_axis.timeAt(position.x() + 0.5));
    const Nanoseconds start = next > 0 ? blocks[next - 1].end : 0;
    const Nanoseconds end = next < blocks.size() ? blocks[next].start : shown().makespan();
    return end > start ? std::optional(Idle{lane, start, end}) : std::nullopt;
}

void TimelineView::Private::clickGap(QPoint position)
{
    if (const std::optional<Idle> idle = idleAt(position))
        Q_EMIT view.gapClicked(idle->device, idle->start, idle->end);
}

void TimelineView::mouseMoveEvent(QMouseEvent* event)
{
    const QPoint position = event->position().toPoint();
    if (d->panFrom) {
        const QPoint moved = position - *d->panFrom;
        d->panFrom = position;
        d->setAxis(panned(m_axis, -moved.x()));
        if (moved.y() != 0)
            verticalScrollBar()->setValue(verticalScrollBar()->value() - moved.y());
        return;
    }
    if (d->rulerDrag && event->buttons() & Qt::LeftButton) {
        d->rulerDrag->moving = true;
        setRange(std::pair(d->rulerDrag->from, d->snapped(event->position().x(), position.y(), event->modifiers())));
        return;
    }
    if (d->drag && event->buttons() & Qt::LeftButton) {
        const bool draggable = isPass(d->drag->block.op); // updates follow from the stages, they are not ordered
        if (!d->drag->moving && draggable
            && (position - d->drag->pressedAt).manhattanLength() >= QApplication::startDragDistance())
            d->drag->moving = true;
        if (d->drag->moving) {
            // Near an edge the view follows.
            constexpr int edge = 24;
            if (position.x() > m_axis.right() - edge)
                d->setAxis(panned(m_axis, edge));
            else if (position.x() < m_axis.left + edge)
                d->setAxis(panned(m_axis, -edge));
            d->updatePlan(d->drag->block, position, event->modifiers());
        }
        return;
    }
    if (d->laneDrag && event->buttons() & Qt::LeftButton) {
        d->dragLane(position);
        return;
    }
    if (d->transferDrag && event->buttons() & Qt::LeftButton) {
        d->dragTransfer(position);
        return;
    }
    if (d->warmUpDrag && event->buttons() & Qt::LeftButton) {
        d->dragWarmUp(position);
        return;
    }
    if (d->bandFrom && event->buttons() & Qt::LeftButton) {
        if (d->cursor != *d->bandFrom
            || (position - *d->bandFrom).manhattanLength() >= QApplication::startDragDistance())
            d->cursor = position;
        d->updateOverlay();
        return;
    }
    d->hovering = true;
    if (d->showCrosshair) {
        d->cursor = position;
        d->updateOverlay();
    }
    if (position.y() < TimelinePainter::rulerHeight && position.x() >= m_axis.left) {
        viewport()->setCursor(Qt::ArrowCursor);
        Q_EMIT hovered(tr("Drag to measure a range, double-click to set or remove a mark"));
        return;
    }
    if (!d->laneEdgeAt(position) && d->hoverTransfer(position))
        return;
    const int lane = d->laneAt(position.y());
    const std::optional<Block> block = blockAt(position);
    const std::optional<int> edge = d->warmUpEdgeAt(position);
    viewport()->setCursor(d->laneEdgeAt(position)      ? Qt::SizeVerCursor
                          : edge                       ? Qt::SplitHCursor
                          : block && isPass(block->op) ? Qt::OpenHandCursor
                                                       : Qt::ArrowCursor);
    if (edge)
        Q_EMIT hovered(tr("Drag to change the warm-up: %1 forwards before the first backward on %2")
                           .arg(warmUp(d->document.design().schedule.order[*edge]))
                           .arg(deviceLabel(d->document.design(), *edge)));
    else if (block && lane >= 0)
        Q_EMIT hovered(blockName(d->document.design(), *d->shown().blockOf(*block), lane));
    else
        Q_EMIT hovered(lane >= 0 ? laneDescription(d->document.design(), lane) : QString());
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event)
{
    if (event->button() == Qt::MiddleButton) {
        d->panFrom.reset();
        viewport()->setCursor(Qt::ArrowCursor);
        return;
    }
    if (event->button() == Qt::LeftButton && d->rulerDrag) {
        if (!d->rulerDrag->moving || (d->range && d->range->first == d->range->second))
            setRange(std::nullopt);
        d->rulerDrag.reset();
        return;
    }
    if (event->button() == Qt::LeftButton && d->laneDrag) {
        d->laneDrag.reset();
        return;
    }
    if (event->button() == Qt::LeftButton && d->transferDrag) {
        d->releaseTransfer();
        return;
    }
    if (event->button() == Qt::LeftButton && d->warmUpDrag) {
        d->commitPlan();
        d->warmUpDrag.reset();
        d->updateOverlay();
        return;
    }
    if (event->button() == Qt::LeftButton && d->bandFrom) {
        const QPoint from = *d->bandFrom;
        if (d->cursor != from)
            d->selectInBand();
        d->bandFrom.reset();
        if (d->cursor == from)
            d->clickGap(from);
        d->updateOverlay();
        return;
    }
    if (event->button() != Qt::LeftButton || !d->drag)
        return;
    const Private::Drag drag = *d->drag;
    if (!drag.moving && !d->group.empty())
        selectBlocks({drag.block}); // a click chooses one again
    if (drag.moving)
        d->updatePlan(drag.block, event->position().toPoint(), event->modifiers());
    d->drag.reset();
    d->commitPlan();
    d->updateOverlay();
    viewport()->update();
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event)
{
    const QPoint position = event->position().toPoint();
    if (event->button() != Qt::LeftButton)
        return;
    if (position.y() < TimelinePainter::rulerHeight && position.x() >= m_axis.left) {
        toggleMark(d->snapped(event->position().x(), position.y(), event->modifiers()));
    } else if (position.x() < plotLeft() && d->laneAt(position.y()) >= 0 && !d->laneEdgeAt(position)
               && d->transferLaneAt(position) < 0) {
        d->currentLane = d->laneAt(position.y());
        action(QStringLiteral("laneFold"))->trigger();
    } else if (blockAt(position)) {
        frameSelection();
    }
}

// ---- From the tray --------------------------------------------------------------------------------

void TimelineView::dragEnterEvent(QDragEnterEvent* event)
{
    if (blockOf(event->mimeData()))
        event->acceptProposedAction();
    else
        event->ignore();
}

void TimelineView::dragMoveEvent(QDragMoveEvent* event)
{
    const std::optional<Block> block = blockOf(event->mimeData());
    if (!block) {
        event->ignore();
        return;
    }
    d->updatePlan(*block, event->position().toPoint(), event->modifiers());
    // A plan that is still being worked out is not refused; the drop itself decides.
    if (d->plan->legal)
        event->acceptProposedAction();
    else
        event->ignore();
}

void TimelineView::dragLeaveEvent(QDragLeaveEvent*)
{
    d->setPlan(std::nullopt);
}

void TimelineView::dropEvent(QDropEvent* event)
{
    const std::optional<Block> block = blockOf(event->mimeData());
    if (!block) {
        event->ignore();
        return;
    }
    d->updatePlan(*block, event->position().toPoint(), event->modifiers());
    const bool legal = d->plan->legal;
    d->commitPlan();
    setFocus(Qt::OtherFocusReason);
    if (legal)
        event->acceptProposedAction();
    else
        event->ignore();
}

void TimelineView::cancel()
{
    if (d->laneDrag) {
        d->strip = d->laneDrag->before;
        d->laneDrag.reset();
        d->lanesChanged();
        return;
    }
    if (d->rulerDrag) {
        const auto before = d->rulerDrag->before;
        d->rulerDrag.reset();
        setRange(before);
        return;
    }
    if (d->drag || d->plan || d->bandFrom || d->warmUpDrag || d->transferDrag) {
        d->transferDrag.reset();
        d->drag.reset();
        d->bandFrom.reset();
        d->warmUpDrag.reset();
        d->setPlan(std::nullopt);
        return;
    }
    // One thing after the other: what was chosen last goes first.
    if (d->document.selection()) {
        d->document.select(std::nullopt);
    } else if (d->reason || d->range) {
        d->reason.reset();
        setRange(std::nullopt);
        d->updateOverlay();
    } else {
        d->marks.clear();
        d->updateOverlay();
    }
}

} // namespace pipewright
