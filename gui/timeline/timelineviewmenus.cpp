// SPDX-License-Identifier: GPL-3.0-or-later
// The menus of TimelineView: of a block, a transfer, a lane, idle time, and the ruler with its range and marks. A right
// click opens that of what is under it; the menu key that of what was chosen last, at its place.
#include "gui/timeline/timelineviewprivate.h"

#include "gui/widgets/timetext.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QContextMenuEvent>
#include <QMenu>

#include <algorithm>
#include <cmath>

namespace pipewright {

void TimelineView::contextMenuEvent(QContextMenuEvent* event)
{
    if (d->isDragging())
        return;
    if (event->reason() == QContextMenuEvent::Keyboard) {
        d->showMenuOfChosen();
        return;
    }
    const QPoint at = event->pos();
    if (at.y() < TimelinePainter::rulerHeight) {
        if (at.x() >= m_axis.left)
            d->showRulerMenu(d->snapped(at.x(), at.y(), event->modifiers()), at);
    } else if (const int device = d->places.transfersAt(at); device >= 0) {
        if (const std::optional<std::size_t> chip = d->chipAt(at))
            selectTransfer(device, d->transferLanes.of(device)[*chip].transfer);
        d->showTransferMenu(device, at);
    } else if (at.x() < plotLeft()) {
        if (const int lane = d->places.at(at.y()); lane >= 0)
            d->showLaneMenu(lane, at);
    } else if (const std::optional<Block> block = blockAt(at)) {
        if (!d->group.contains(*block))
            d->document.select(block);
        d->chosen = Private::Chosen::Block;
        d->showBlockMenu(at);
    } else if (const std::optional<Private::Idle> idle = d->idleAt(at)) {
        d->showIdleMenu(*idle, at);
    } else {
        event->ignore();
    }
}

bool TimelineView::Private::isDragging() const
{
    return gesture || plan;
}

void TimelineView::Private::showMenuOfChosen()
{
    if (isDragging())
        return;
    const TimeAxis& axis = view.m_axis;
    const auto xOf = [&axis](Nanoseconds time) { // or at the side of the view beyond which it is
        return static_cast<int>(std::clamp<double>(axis.xOf(static_cast<double>(time)), axis.left, axis.right()));
    };
    if (chosen == Chosen::Idle && reason)
        return showIdleMenu(
            {reason->device, reason->start, reason->end},
            QPoint(xOf(reason->start + (reason->end - reason->start) / 2), places.lane(reason->device).center().y()));
    if (chosen == Chosen::Lane && currentLane >= 0)
        return showLaneMenu(currentLane, QPoint(plotLeft() / 2, places.lane(currentLane).center().y()));
    int device = -1;
    if (const std::optional<Transfer> transfer = view.selectedTransfer(&device);
        chosen == Chosen::Transfer && transfer && strip.transferHeight(device) > 0) {
        const QRect chip = view.rectOfTransfer(device, *transfer);
        return showTransferMenu(device, chip.isNull() ? places.transfers(device).center().toPoint() : chip.center());
    }
    if (chosen != Chosen::Ruler && document.selection() && findShown(*document.selection(), nullptr))
        return showBlockMenu(view.rectOfBlock(*document.selection()).center());
    // Nothing is chosen: the ruler is there always.
    auto time = std::max<Nanoseconds>(0, std::llround(axis.timeAt(axis.left + axis.width / 2.0)));
    if (const auto& range = readings.range())
        time = range->first + (range->second - range->first) / 2;
    else if (const auto mark = readings.lastMark())
        time = *mark;
    showRulerMenu(time, QPoint(xOf(time), TimelinePainter::rulerHeight / 2));
}

QMenu* TimelineView::Private::menuOf(std::initializer_list<const char*> names) const
{
    auto* menu = new QMenu(&view);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (const char* name : names) {
        if (*name == '\0')
            menu->addSeparator();
        else
            menu->addAction(view.action(QLatin1String(name)));
    }
    return menu;
}

void TimelineView::Private::popUp(QMenu& menu, QPoint position) const
{
    const QRect inside = view.viewport()->rect(); // what is chosen may be scrolled out of view
    menu.popup(view.viewport()->mapToGlobal(QPoint(std::clamp(position.x(), inside.left(), inside.right()),
                                                   std::clamp(position.y(), inside.top(), inside.bottom()))));
}

void TimelineView::Private::showBlockMenu(QPoint position)
{
    QMenu* menu = menuOf({"frame",    "measure", "explain",  "",      "alikeMicrobatch", "alikeStage",
                          "alikeOp",  "",        "earlier",  "later", "rippleEarlier",   "rippleLater",
                          "exchange", "split",   "merge",    "pin",   "warmUpMore",      "warmUpFewer",
                          "",         "stageUp", "stageDown"});
    const Block selected = *document.selection();
    const Design& design = document.design();
    QMenu* devices = menu->addMenu(tr("Move stage %1 to").arg(selected.stage));
    const int home = deviceOfBlock(design.schedule, layout(), selected);
    for (int device = 0; device < design.schedule.devices(); ++device) {
        QAction* entry = devices->addAction(deviceLabel(design, device), &view, [this, device, selected] {
            applyOrRefuse(MoveStage{selected.stage, device, selected.replica});
        });
        entry->setEnabled(device != home);
    }
    menu->addSeparator();
    menu->addAction(view.action(QStringLiteral("unplace")));
    popUp(*menu, position);
}

void TimelineView::Private::showTransferMenu(int device, QPoint position)
{
    chooseLane(device);
    chosen = Chosen::Transfer;
    popUp(*menuOf({"transferEarlier", "transferLater", "transferFree", "", "laneTransfers", "allTransfers"}), position);
}

void TimelineView::Private::showLaneMenu(int lane, QPoint position)
{
    chooseLane(lane);
    view.action(QStringLiteral("lanePin"))->setChecked(strip.isPinned(lane));
    view.action(QStringLiteral("laneFold"))->setChecked(strip.isFolded(lane));
    popUp(*menuOf({"lanePin", "laneFold", "laneTransfers", "allTransfers", "laneMembers", "allMembers", "", "laneUp",
                   "laneDown", "", "laneHigher", "laneLower", "lanesHigher", "lanesLower", "", "lanesReset"}),
          position);
}

void TimelineView::Private::showIdleMenu(const Idle& idle, QPoint position)
{
    QMenu* menu = menuOf({});
    menu->addAction(tr("%1 is idle for %2")
                        .arg(deviceLabel(document.design(), idle.device), durationText(idle.end - idle.start)))
        ->setEnabled(false);
    menu->addAction(tr("Explain this idle time"), &view,
                    [this, idle] { Q_EMIT view.gapClicked(idle.device, idle.start, idle.end); });
    menu->addAction(tr("Measure it"), &view, [this, idle] { view.setRange(std::pair(idle.start, idle.end)); });
    menu->addAction(tr("Show it alone"), &view, [this, idle] { view.showRange(idle.start, idle.end); });
    popUp(*menu, position);
}

void TimelineView::Private::showRulerMenu(Nanoseconds time, QPoint position)
{
    chosen = Chosen::Ruler;
    QMenu* menu = menuOf({"measure", "measureByNumbers", "frameRange"});
    menu->addAction(tr("Remove the measured range"), &view, [this] { view.setRange(std::nullopt); })
        ->setEnabled(readings.range().has_value());
    menu->addSeparator();
    const std::optional<Nanoseconds> mark = readings.markNear(time, markReach());
    const Nanoseconds at = mark.value_or(time);
    const QString text = timeText(at, view.m_axis.nsPerPixel);
    menu->addAction(mark ? tr("Remove the mark at %1").arg(text) : tr("Set a mark at %1").arg(text), &view,
                    [this, at] { view.toggleMark(at); });
    menu->addAction(tr("Remove all marks"), &view,
                    [this] {
                        readings.clearMarks();
                        updateOverlay();
                    })
        ->setEnabled(!readings.marks().empty());
    menu->addSeparator();
    menu->addAction(view.action(QStringLiteral("showAll")));
    popUp(*menu, position);
}

} // namespace pipewright
