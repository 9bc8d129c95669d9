// SPDX-License-Identifier: GPL-3.0-or-later
// Mouse events of TimelineView: a press begins the first gesture that takes it, which then gets the moves and the
// release. Blocks from the tray come as drags of the window system.
#include "core/schedule/warmup.h"
#include "gui/timeline/blockdrag.h"
#include "gui/timeline/lanedrag.h"
#include "gui/timeline/panning.h"
#include "gui/timeline/rubberband.h"
#include "gui/timeline/rulerdrag.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineviewprivate.h"
#include "gui/timeline/transferdrag.h"
#include "gui/timeline/warmupdrag.h"

#include <QAction>
#include <QDragEnterEvent>
#include <QMimeData>
#include <QMouseEvent>

namespace pipewright {
namespace {

std::optional<Block> blockOf(const QMimeData* data)
{
    if (!data || !data->hasFormat(QLatin1String(blockMimeType)))
        return std::nullopt;
    return parseBlock(data->data(QLatin1String(blockMimeType)).toStdString());
}

} // namespace

// ---- Mouse ----------------------------------------------------------------------------------------

void TimelineView::mousePressEvent(QMouseEvent* event)
{
    if (event->button() == Qt::MiddleButton) {
        d->panning = std::make_unique<Panning>(*d, event->position().toPoint());
        return;
    }
    if (event->button() != Qt::LeftButton)
        return;
    setFocus(Qt::MouseFocusReason);
    d->refusal->hide();
    for (const auto press : {RulerDrag::press, TransferDrag::press, LaneDrag::press, WarmUpDrag::press,
                             BlockDrag::press, RubberBand::press})
        if (press(*d, *event))
            return;
}

void TimelineView::mouseMoveEvent(QMouseEvent* event)
{
    if (d->panning)
        d->panning->move(*event);
    else if (d->gesture && event->buttons() & Qt::LeftButton)
        d->gesture->move(*event);
    else
        d->hover(event->position().toPoint());
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event)
{
    std::unique_ptr<Gesture> ended;
    if (event->button() == Qt::MiddleButton)
        ended = std::move(d->panning);
    else if (event->button() == Qt::LeftButton)
        ended = std::move(d->gesture);
    if (ended)
        ended->release(*event);
}

void TimelineView::Private::hover(QPoint position)
{
    hovering = true;
    if (showCrosshair) {
        cursor = position;
        updateOverlay();
    }
    if (position.y() < TimelinePainter::rulerHeight && position.x() >= view.axis().left) {
        view.viewport()->setCursor(Qt::ArrowCursor);
        Q_EMIT view.hovered(tr("Drag to measure a range, double-click to set or remove a mark"));
        return;
    }
    if (!places.edgeAt(position) && hoverTransfer(position))
        return;
    if (const QString kernel = kernelTextAt(position); !kernel.isEmpty() && !places.edgeAt(position)) {
        view.viewport()->setCursor(Qt::ArrowCursor);
        Q_EMIT view.hovered(kernel);
        return;
    }
    if (const QString member = memberTextAt(position); !member.isEmpty() && !places.edgeAt(position)) {
        view.viewport()->setCursor(Qt::ArrowCursor);
        Q_EMIT view.hovered(member);
        return;
    }
    const int lane = places.at(position.y());
    if (lane >= 0 && memberLanes.membersOf(lane) > 0 && places.unfolder(lane).contains(position)) {
        view.viewport()->setCursor(Qt::PointingHandCursor);
        Q_EMIT view.hovered(tr("The %1 members of %2: click to show or hide them")
                                .arg(memberLanes.membersOf(lane))
                                .arg(deviceLabel(document.design(), lane)));
        return;
    }
    const std::optional<Block> block = view.blockAt(position);
    const std::optional<int> edge = warmUpEdgeAt(position);
    view.viewport()->setCursor(places.edgeAt(position)      ? Qt::SizeVerCursor
                               : edge                       ? Qt::SplitHCursor
                               : block && isPass(block->op) ? Qt::OpenHandCursor
                                                            : Qt::ArrowCursor);
    if (edge)
        Q_EMIT view.hovered(tr("Drag to change the warm-up: %1 forwards before the first backward on %2")
                                .arg(warmUp(document.design().schedule.order[*edge]))
                                .arg(deviceLabel(document.design(), *edge)));
    else if (block && lane >= 0)
        Q_EMIT view.hovered(view.nameOfBlock(*block));
    else
        Q_EMIT view.hovered(lane >= 0 ? laneDescription(document.design(), lane) : QString());
}

void TimelineView::cancel()
{
    if (const std::unique_ptr<Gesture> ended = std::move(d->gesture)) {
        ended->cancel();
        return;
    }
    if (d->plan) {
        d->setPlan(std::nullopt);
        return;
    }
    // One thing after the other: what was chosen last goes first.
    if (d->refusal->isVisible()) {
        d->refusal->hide();
    } else if (d->document.selection()) {
        d->document.select(std::nullopt);
    } else if (d->reason || d->readings.range()) {
        d->reason.reset();
        setRange(std::nullopt);
        d->updateOverlay();
    } else {
        d->readings.clearMarks();
        d->updateOverlay();
    }
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event)
{
    const QPoint position = event->position().toPoint();
    if (event->button() != Qt::LeftButton)
        return;
    if (position.y() < TimelinePainter::rulerHeight && position.x() >= m_axis.left) {
        toggleMark(d->snapped(event->position().x(), position.y(), event->modifiers()));
    } else if (position.x() < plotLeft() && d->places.at(position.y()) >= 0 && !d->places.edgeAt(position)
               && d->places.transfersAt(position) < 0 && d->places.kernelsAt(position) < 0
               && d->places.membersAt(position) < 0) {
        d->currentLane = d->places.at(position.y());
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

} // namespace pipewright
