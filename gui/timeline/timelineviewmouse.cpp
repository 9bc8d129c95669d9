// SPDX-License-Identifier: GPL-3.0-or-later
// Mouse events of a TimelineView: a press starts the first gesture that accepts it, and that gesture gets the moves and
// the release. Blocks from the tray arrive as drags of the window system.
#include "core/schedule/warmup.h"
#include "gui/timeline/blockdrag.h"
#include "gui/timeline/collectivedrag.h"
#include "gui/timeline/lanedrag.h"
#include "gui/timeline/panning.h"
#include "gui/timeline/rubberband.h"
#include "gui/timeline/rulerdrag.h"
#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"
#include "gui/timeline/transferdrag.h"
#include "gui/timeline/warmupdrag.h"
#include "gui/widgets/wheelstep.h"

#include <QAction>
#include <QDragEnterEvent>
#include <QHelpEvent>
#include <QMimeData>
#include <QMouseEvent>
#include <QToolTip>

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
        d->hand.middle = std::make_unique<Panning>(*d, event->position().toPoint());
        return;
    }
    if (event->button() != Qt::LeftButton)
        return;
    setFocus(Qt::MouseFocusReason);
    d->edits.hideRefusal();
    for (const auto press : {RulerDrag::press, TransferDrag::press, CollectiveDrag::press, LaneDrag::press,
                             WarmUpDrag::press, BlockDrag::press, RubberBand::press})
        if (press(*d, *event))
            return;
}

void TimelineView::mouseMoveEvent(QMouseEvent* event)
{
    if (d->hand.middle)
        d->hand.middle->move(*event);
    else if (d->hand.left && event->buttons() & Qt::LeftButton)
        d->hand.left->move(*event);
    else
        hover(event->position().toPoint());
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event)
{
    std::unique_ptr<Gesture> ended;
    if (event->button() == Qt::MiddleButton)
        ended = std::move(d->hand.middle);
    else if (event->button() == Qt::LeftButton)
        ended = std::move(d->hand.left);
    if (ended)
        ended->release(*event);
}

void TimelineView::hover(QPoint position)
{
    d->overlay.hover(position);
    const LanePlaces& places = d->lanes.places();
    if (position.y() < TimelinePainter::rulerHeight && position.x() >= axis().left) {
        viewport()->setCursor(Qt::ArrowCursor);
        Q_EMIT hovered(tr("Drag to measure a range, double-click to set or remove a mark"));
        return;
    }
    if (!places.edgeAt(position) && hoverTransfer(position))
        return;
    if (const QString kernel = d->map.kernelTextAt(position); !kernel.isEmpty() && !places.edgeAt(position)) {
        viewport()->setCursor(Qt::ArrowCursor);
        Q_EMIT hovered(kernel);
        return;
    }
    if (const QString member = d->map.memberTextAt(position); !member.isEmpty() && !places.edgeAt(position)) {
        viewport()->setCursor(Qt::ArrowCursor);
        Q_EMIT hovered(member);
        return;
    }
    if (const int group = d->map.unfolderAt(position); group >= 0) {
        viewport()->setCursor(Qt::PointingHandCursor);
        Q_EMIT hovered(tr("The %1 members of %2: click to show or hide them")
                           .arg(d->members.membersOf(group))
                           .arg(deviceLabel(d->document.design(), group)));
        return;
    }
    const int lane = places.at(position.y());
    if (const int memory = places.memoryAt(position); memory >= 0 && d->map.plot().contains(position)) {
        viewport()->setCursor(Qt::ArrowCursor);
        Q_EMIT hovered(d->memory.valueAt(memory, axis().timeAt(position.x() + 0.5)));
        return;
    }
    const std::optional<Block> block = blockAt(position);
    const std::optional<int> edge = d->map.warmUpEdgeAt(position);
    viewport()->setCursor(places.edgeAt(position)      ? Qt::SizeVerCursor
                          : edge                       ? Qt::SplitHCursor
                          : block && isPass(block->op) ? Qt::OpenHandCursor
                                                       : Qt::ArrowCursor);
    if (edge)
        Q_EMIT hovered(tr("Drag to change the warm-up: %1 forwards before the first backward on %2")
                           .arg(warmUp(d->document.design().schedule.order[*edge]))
                           .arg(deviceLabel(d->document.design(), *edge)));
    else if (block && lane >= 0)
        Q_EMIT hovered(nameOfBlock(*block));
    else
        Q_EMIT hovered(lane >= 0 ? nameOfLane(lane) : QString());
}

bool TimelineView::hoverTransfer(QPoint position)
{
    const int device = d->lanes.places().transfersAt(position);
    if (device < 0)
        return false;
    const std::optional<std::size_t> chip = d->map.chipAt(position);
    const bool dense =
        d->map.chips(device).isDense(d->transfers.rowAt(d->lanes.places().transfers(device), position.y()));
    viewport()->setCursor(chip && !dense              ? Qt::OpenHandCursor
                          : position.x() < plotLeft() ? Qt::PointingHandCursor
                                                      : Qt::ArrowCursor);
    if (chip)
        Q_EMIT hovered(d->transfers.text(device, *chip, d->shown.transferTimes()));
    else
        Q_EMIT hovered(dense ? tr("Too many transfers to grip here: zoom in to reorder them")
                             : tr("What %1 sends (filled) and receives (outlined), in the order it issues them: drag "
                                  "one to reorder")
                                   .arg(deviceLabel(d->document.design(), device)));
    return true;
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event)
{
    const QPoint position = event->position().toPoint();
    if (event->button() != Qt::LeftButton)
        return;
    if (position.y() < TimelinePainter::rulerHeight && position.x() >= axis().left) {
        toggleMark(d->map.timeNear(event->position().x(), position.y(), event->modifiers()));
    } else if (position.x() < plotLeft() && d->lanes.places().at(position.y()) >= 0
               && !d->lanes.places().edgeAt(position) && d->lanes.places().transfersAt(position) < 0
               && d->lanes.places().kernelsAt(position) < 0 && d->lanes.places().membersAt(position) < 0) {
        d->lanes.choose(d->lanes.places().at(position.y()));
        action(QStringLiteral("laneFold"))->trigger();
    } else if (blockAt(position)) {
        frameSelection();
    }
}

// ---- Wheel, modifier keys, tool tips, menu -------------------------------------------------------

void TimelineView::wheelEvent(QWheelEvent* event)
{
    const WheelStep step = wheelStep(*event, d->lanes.places().pitch());
    event->accept();
    if (step.zoom != 1)
        zoomBy(step.zoom, event->position().x());
    else if (step.pan != 0)
        d->scroll.panBy(step.pan);
    else
        d->scroll.scrollLanes(-step.scroll);
}

bool TimelineView::viewportEvent(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QString text = d->hand.moving() ? QString() : toolTipAt(help->pos());
        if (text.isEmpty())
            QToolTip::hideText();
        else
            QToolTip::showText(help->globalPos(), text, viewport());
        return true;
    }
    if (event->type() == QEvent::Leave) {
        d->overlay.leave();
        Q_EMIT hovered(QString());
    }
    return QAbstractScrollArea::viewportEvent(event);
}

QString TimelineView::toolTipAt(QPoint position) const
{
    if (const std::optional<Block> block = blockAt(position))
        return describe(*block);
    if (const QString sum = d->map.gradientSumTextAt(position); !sum.isEmpty())
        return sum.toHtmlEscaped();
    if (const std::optional<std::size_t> chip = d->map.chipAt(position))
        return d->transfers.text(d->lanes.places().transfersAt(position), *chip, d->shown.transferTimes())
            .toHtmlEscaped();
    if (const QString kernel = d->map.kernelTextAt(position); !kernel.isEmpty())
        return kernel.toHtmlEscaped();
    if (const QString member = d->map.memberTextAt(position); !member.isEmpty())
        return member.toHtmlEscaped();
    const int lane = d->lanes.places().at(position.y());
    if (lane >= 0 && position.x() >= axis().right())
        return idleText(lane).toHtmlEscaped().replace(QLatin1Char('\n'), QLatin1String("<br>"));
    return lane >= 0 && position.x() < plotLeft() ? nameOfLane(lane).toHtmlEscaped() : QString();
}

bool TimelineView::event(QEvent* event)
{
    // While a block is dragged, Alt switches snapping and Ctrl rippling; the plan is updated without a mouse move.
    if ((event->type() == QEvent::KeyPress || event->type() == QEvent::KeyRelease) && d->hand.left) {
        const auto* key = static_cast<QKeyEvent*>(event);
        for (const auto& [held, modifier] :
             {std::pair(Qt::Key_Alt, Qt::AltModifier), {Qt::Key_Control, Qt::ControlModifier}}) {
            if (key->key() != held)
                continue;
            if (d->hand.left->changeModifiers(event->type() == QEvent::KeyPress ? Qt::KeyboardModifiers(modifier)
                                                                                : Qt::NoModifier))
                return true;
        }
    }
    return QAbstractScrollArea::event(event);
}

void TimelineView::contextMenuEvent(QContextMenuEvent* event)
{
    d->menus.showAt(*event);
}

// ---- From the tray --------------------------------------------------------------------------------

void TimelineView::dragEnterEvent(QDragEnterEvent* event)
{
    if (blockOf(event->mimeData()))
        event->acceptProposedAction();
    else
        event->ignore();
}

void TimelineView::holdFromTray(const Block& block, const QDropEvent& event)
{
    d->overlay.setCursor(event.position().toPoint());
    d->drop.hold(block, event.position().toPoint(), event.modifiers());
}

void TimelineView::dragMoveEvent(QDragMoveEvent* event)
{
    const std::optional<Block> block = blockOf(event->mimeData());
    if (!block) {
        event->ignore();
        return;
    }
    holdFromTray(*block, *event);
    // A plan that is still being worked out is not refused; the drop itself decides.
    if (d->drop.plan()->isLegal())
        event->acceptProposedAction();
    else
        event->ignore();
}

void TimelineView::dragLeaveEvent(QDragLeaveEvent*)
{
    d->drop.clear();
}

void TimelineView::dropEvent(QDropEvent* event)
{
    const std::optional<Block> block = blockOf(event->mimeData());
    if (!block) {
        event->ignore();
        return;
    }
    holdFromTray(*block, *event);
    const bool legal = d->drop.plan()->isLegal();
    d->drop.commit();
    setFocus(Qt::OtherFocusReason);
    if (legal)
        event->acceptProposedAction();
    else
        event->ignore();
}

QString TimelineView::numbersOfLane(int device) const
{
    const std::vector<LaneHeader>& headers = d->canvas.headers();
    QStringList parts;
    if (device >= 0 && device < std::ssize(headers) && !headers[device].memory.isEmpty())
        parts << (headers[device].memory.startsWith(tr("peak")) ? headers[device].memory
                                                                : tr("peak %1").arg(headers[device].memory));
    if (const QString idle = d->idle.percentLabel(device); !idle.isEmpty())
        parts << tr("idle %1").arg(idle);
    if (!parts.isEmpty())
        parts << sideName(d->shown.side());
    return parts.join(QStringLiteral(", "));
}

} // namespace pipewright
