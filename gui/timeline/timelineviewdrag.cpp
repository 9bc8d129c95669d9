// SPDX-License-Identifier: GPL-3.0-or-later
// Dragging in TimelineView: the plan of a drop while the cursor moves, what the overlay shows of it, and
// its one edit at the end. Blocks dragged here and blocks from the tray take the same way.
#include "gui/timeline/dependencies.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineviewprivate.h"

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

void TimelineView::Private::followCursor(const Block& block, QPoint position, Qt::KeyboardModifiers modifiers)
{
    if (document.evaluationMilliseconds() < slowMilliseconds) {
        updatePlan(block, position, modifiers);
        return;
    }
    cursor = position;
    postponedPlan = [this, block, position, modifiers] { updatePlan(block, position, modifiers); };
    planTimer.start();
    updateOverlay();
}

void TimelineView::Private::updatePlan(const Block& block, QPoint position, Qt::KeyboardModifiers modifiers)
{
    planTimer.stop();
    cursor = position;
    DropTarget target;
    target.device = plotRect().contains(position) ? laneAt(position.y()) : -1;
    target.time = view.m_axis.timeAt(position.x());
    target.snapTime = modifiers & Qt::AltModifier ? 0 : snapPixels * view.m_axis.nsPerPixel;
    setPlan(planDrop(document, layout, block, target, plan ? &*plan : nullptr));
}

void TimelineView::Private::setPlan(std::optional<DropPlan> next)
{
    planTimer.stop();
    const auto predictionOf = [](const std::optional<DropPlan>& p) { return p ? p->prediction.get() : nullptr; };
    const bool changed = predictionOf(plan) != predictionOf(next);
    plan = std::move(next);
    if (changed) {
        previewLayout.reset();
        previewHeaders.clear();
        if (const Prediction* prediction = predictionOf(plan)) {
            const Design& edited = plan->edit.design;
            previewLayout.emplace(prediction->program, prediction->timeline, edited.schedule.devices());
            previewHeaders = laneHeaders(edited, prediction);
        }
        Q_EMIT view.previewChanged();
    }
    updateOverlay();
    view.viewport()->update();
}

bool TimelineView::Private::commitPlan()
{
    if (!plan)
        return false;
    const DropPlan done = *plan;
    setPlan(std::nullopt);
    if (done.kind == DropPlan::Kind::Nothing)
        return false;
    if (!done.legal) {
        refuse(done.edit.diagnostics);
        return false;
    }
    const bool changes = done.changes;
    document.commit(done.edit);
    document.select(done.block);
    return changes;
}

void TimelineView::Private::refuse(const Diagnostics& diagnostics)
{
    QString hint;
    const QString what = explain(diagnostics, &hint);
    if (!what.isEmpty())
        Q_EMIT view.editRefused(hint.isEmpty() ? what : QStringLiteral("%1: %2").arg(what, hint));
}

void TimelineView::Private::updateOverlay()
{
    OverlayContent content;
    content.plot = plotRect();
    content.cursor = cursor;
    content.frameTime = overlay->content().frameTime;
    const TimeAxis& axis = view.m_axis;
    const TimelineLayout& from = shown();

    const std::optional<Block> subject =
        plan ? std::optional(plan->block) : drag && drag->moving ? std::optional(drag->block) : document.selection();
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
        const Design& design = plan && plan->prediction ? plan->edit.design : document.design();
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
                content.arrows.push_back({{from.rect.right(), from.rect.center().y()},
                                          {to.rect.left(), to.rect.center().y()}, false});
            } else {
                const double inset = 4; // off the corners, so that arrows of neighbours stay apart
                content.arrows.push_back({{from.rect.right() - std::min(inset, from.rect.width() / 2), from.rect.top()},
                                          {to.rect.left() + std::min(inset, to.rect.width() / 2), to.rect.top()}, true});
            }
        };
        const Dependencies dependencies = dependenciesOf(design, from, *subject);
        for (const Block& input : dependencies.inputs)
            connect(input, *subject);
        for (const Block& output : dependencies.outputs)
            connect(*subject, output);
    }
    addReadings(content);
    if (plan) {
        content.legal = plan->legal || plan->kind == DropPlan::Kind::Nothing;
        content.title = plan->title;
        content.detail = plan->detail;
    }
    if (plan || (drag && drag->moving)) {
        const Block& held = plan ? plan->block : drag->block;
        const int lane = laneAt(cursor.y());
        double width = 32;
        double height = lanePitch() - 21;
        OverlayContent::Ghost ghost{{}, held, 0};
        QPointF grab(width / 2, height / 2);
        if (const LaneBlock* block = layout.blockOf(held)) {
            ghost.chunk = block->chunk;
            const QRectF rect = blockRect(*block, axis, blockArea(layout.find(held)->device), scale());
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
        d->rulerPress = d->snapped(event->position().x(), position.y(), event->modifiers());
        setRange(std::nullopt);
        return;
    }
    const std::optional<Block> block = blockAt(position);
    d->document.select(block);
    if (block) {
        Private::Drag drag;
        drag.block = *block;
        drag.pressedAt = position;
        drag.grab = event->position() - QRectF(rectOfBlock(*block)).topLeft();
        d->drag = drag;
        return;
    }
    const int lane = d->laneAt(position.y());
    if (lane >= 0 && d->plotRect().contains(position)) {
        const std::vector<LaneBlock>& blocks = d->shown().lanes()[static_cast<std::size_t>(lane)].blocks();
        const std::size_t next = d->shown().lanes()[static_cast<std::size_t>(lane)].firstEndingAfter(
            m_axis.timeAt(position.x() + 0.5));
        const Nanoseconds start = next > 0 ? blocks[next - 1].end : 0;
        const Nanoseconds end = next < blocks.size() ? blocks[next].start : d->shown().makespan();
        if (end > start)
            Q_EMIT gapClicked(lane, start, end);
    }
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
    if (d->rulerPress && event->buttons() & Qt::LeftButton) {
        setRange(std::pair(*d->rulerPress, d->snapped(event->position().x(), position.y(), event->modifiers())));
        return;
    }
    if (d->drag && event->buttons() & Qt::LeftButton) {
        const bool draggable = d->drag->block.op != Op::U; // updates follow from the stages, they are not ordered
        if (!d->drag->moving && draggable &&
            (position - d->drag->pressedAt).manhattanLength() >= QApplication::startDragDistance())
            d->drag->moving = true;
        if (d->drag->moving) {
            // Near an edge the view follows.
            constexpr int edge = 24;
            if (position.x() > m_axis.right() - edge)
                d->setAxis(panned(m_axis, edge));
            else if (position.x() < m_axis.left + edge)
                d->setAxis(panned(m_axis, -edge));
            d->followCursor(d->drag->block, position, event->modifiers());
        }
        return;
    }
    const int lane = d->laneAt(position.y());
    const std::optional<Block> block = blockAt(position);
    viewport()->setCursor(block && block->op != Op::U ? Qt::OpenHandCursor : Qt::ArrowCursor);
    if (block && lane >= 0)
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
    if (event->button() == Qt::LeftButton && d->rulerPress) {
        d->rulerPress.reset();
        if (d->range && d->range->first == d->range->second)
            setRange(std::nullopt);
        return;
    }
    if (event->button() != Qt::LeftButton || !d->drag)
        return;
    const Private::Drag drag = *d->drag;
    if (drag.moving)
        d->updatePlan(drag.block, event->position().toPoint(), event->modifiers());
    d->drag.reset();
    d->commitPlan();
    d->updateOverlay();
    viewport()->update();
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (event->button() == Qt::LeftButton && blockAt(event->position().toPoint()))
        frameSelection();
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
    d->followCursor(*block, event->position().toPoint(), event->modifiers());
    // A plan that is still being worked out is not refused; the drop itself decides.
    if (!d->plan || d->plan->legal)
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
    if (d->drag || d->plan) {
        d->drag.reset();
        d->setPlan(std::nullopt);
        return;
    }
    // One thing after the other: what was chosen last goes first.
    if (d->document.selection()) {
        d->document.select(std::nullopt);
    } else if (d->reason || d->range) {
        d->reason.reset();
        d->rulerPress.reset();
        setRange(std::nullopt);
    } else {
        d->marks.clear();
        d->updateOverlay();
    }
}

} // namespace pipewright
