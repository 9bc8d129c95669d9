// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelinemenus.h"

#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/timetext.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QContextMenuEvent>
#include <QMenu>

#include <algorithm>
#include <cmath>

namespace pipewright {

void TimelineMenus::showAt(QContextMenuEvent& event)
{
    if (isDragging())
        return;
    if (event.reason() == QContextMenuEvent::Keyboard) {
        showOfChosen();
        return;
    }
    const QPoint at = event.pos();
    const LanePlaces& places = d.lanes.places();
    if (at.y() < TimelinePainter::rulerHeight) {
        if (at.x() >= d.map.axis().left)
            showOfRuler(d.map.timeNear(at.x(), at.y(), event.modifiers()), at);
    } else if (const int device = places.transfersAt(at); device >= 0) {
        if (const std::optional<std::size_t> chip = d.map.chipAt(at))
            m_view.selectTransfer(device, d.transfers.of(device)[*chip].transfer);
        showOfTransfer(device, at);
    } else if (at.x() < TimelineView::plotLeft()) {
        if (const int lane = places.at(at.y()); lane >= 0)
            showOfLane(lane, at);
    } else if (const std::optional<Block> block = d.map.blockAt(at)) {
        if (!d.selection.isInGroup(*block))
            d.document.select(block);
        m_chosen = Chosen::Block;
        showOfBlock(at);
    } else if (const std::optional<IdleTime> idle = d.map.idleAt(at)) {
        showOfIdle(*idle, at);
    } else {
        event.ignore();
    }
}

bool TimelineMenus::isDragging() const
{
    return d.hand.left || d.drop.plan();
}

void TimelineMenus::showOfChosen()
{
    if (isDragging())
        return;
    const LanePlaces& places = d.lanes.places();
    const TimeAxis& axis = d.map.axis();
    const auto xOf = [&axis](Nanoseconds time) { // or at the side of the view beyond which it is
        return static_cast<int>(std::clamp<double>(axis.xOf(static_cast<double>(time)), axis.left, axis.right()));
    };
    if (const TimelineView::Reason* reason = d.overlay.reason(); m_chosen == Chosen::Idle && reason)
        return showOfIdle(
            {reason->device, reason->start, reason->end},
            QPoint(xOf(reason->start + (reason->end - reason->start) / 2), places.lane(reason->device).center().y()));
    if (const int lane = d.lanes.pressed(); m_chosen == Chosen::Lane && lane >= 0)
        return showOfLane(lane, QPoint(TimelineView::plotLeft() / 2, places.lane(lane).center().y()));
    if (const auto transfer = d.selection.transfer();
        m_chosen == Chosen::Transfer && transfer && d.lanes.strip().transferHeight(transfer->first) > 0) {
        const QRect chip = m_view.rectOfTransfer(transfer->first, transfer->second);
        return showOfTransfer(transfer->first,
                              chip.isNull() ? places.transfers(transfer->first).center().toPoint() : chip.center());
    }
    const std::optional<Block> selected = d.document.selection();
    if (m_chosen != Chosen::Ruler && selected && d.shown.find(*selected))
        return showOfBlock(m_view.rectOfBlock(*selected).center());
    // Nothing is chosen: the ruler is there always.
    auto time = std::max<Nanoseconds>(0, std::llround(axis.timeAt(axis.left + axis.width / 2.0)));
    if (const auto& range = d.readings.range())
        time = range->first + (range->second - range->first) / 2;
    else if (const auto mark = d.readings.lastMark())
        time = *mark;
    showOfRuler(time, QPoint(xOf(time), TimelinePainter::rulerHeight / 2));
}

QMenu* TimelineMenus::menuOf(std::initializer_list<const char*> names) const
{
    auto* menu = new QMenu(&m_view);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (const char* name : names) {
        if (*name == '\0')
            menu->addSeparator();
        else
            menu->addAction(m_view.action(QLatin1String(name)));
    }
    return menu;
}

void TimelineMenus::popUp(QMenu& menu, QPoint position) const
{
    const QRect inside = m_view.viewport()->rect(); // what is chosen may be scrolled out of view
    menu.popup(m_view.viewport()->mapToGlobal(QPoint(std::clamp(position.x(), inside.left(), inside.right()),
                                                     std::clamp(position.y(), inside.top(), inside.bottom()))));
}

void TimelineMenus::showOfBlock(QPoint position)
{
    QMenu* menu = menuOf({"frame",    "measure",   "explain",    "",      "alikeMicrobatch", "alikeStage",
                          "alikeOp",  "",          "earlier",    "later", "rippleEarlier",   "rippleLater",
                          "exchange", "split",     "merge",      "pin",   "warmUpMore",      "warmUpFewer",
                          "",         "copyOrder", "pasteOrder", "",      "stageUp",         "stageDown"});
    d.paste.previewIn(*menu);
    const Block selected = *d.document.selection();
    const Design& design = d.document.design();
    QMenu* devices = menu->addMenu(tr("Move stage %1 to").arg(selected.stage));
    const int home = deviceOfBlock(design.schedule, d.shown.present(), selected);
    for (int device = 0; device < design.schedule.devices(); ++device) {
        QAction* entry = devices->addAction(deviceLabel(design, device), &m_view, [this, device, selected] {
            d.edits.apply(MoveStage{selected.stage, device, selected.replica});
        });
        entry->setEnabled(device != home);
    }
    menu->addSeparator();
    menu->addAction(m_view.action(QStringLiteral("unplace")));
    popUp(*menu, position);
}

void TimelineMenus::showOfTransfer(int device, QPoint position)
{
    d.lanes.choose(device);
    m_chosen = Chosen::Transfer;
    popUp(*menuOf({"transferEarlier", "transferLater", "transferBeforeCollective", "transferBehindCollective",
                   "transferFree", "", "laneTransfers", "allTransfers"}),
          position);
}

void TimelineMenus::showOfLane(int lane, QPoint position)
{
    d.lanes.choose(lane);
    m_view.action(QStringLiteral("lanePin"))->setChecked(d.lanes.strip().isPinned(lane));
    m_view.action(QStringLiteral("laneFold"))->setChecked(d.lanes.strip().isFolded(lane));
    QMenu* menu = menuOf({"lanePin",
                          "laneFold",
                          "",
                          "laneTransfers",
                          "allTransfers",
                          "laneKernels",
                          "allKernels",
                          "laneMembers",
                          "allMembers",
                          "",
                          "pasteOrder",
                          "",
                          "laneUp",
                          "laneDown",
                          "",
                          "laneHigher",
                          "laneLower",
                          "lanesHigher",
                          "lanesLower",
                          "",
                          "lanesReset"});
    d.paste.previewIn(*menu);
    popUp(*menu, position);
}

void TimelineMenus::showOfIdle(const IdleTime& idle, QPoint position)
{
    QMenu* menu = menuOf({});
    menu->addAction(tr("%1 is idle for %2")
                        .arg(deviceLabel(d.document.design(), idle.device), durationText(idle.end - idle.start)))
        ->setEnabled(false);
    menu->addAction(tr("Explain this idle time"), &m_view,
                    [this, idle] { Q_EMIT m_view.gapClicked(idle.device, idle.start, idle.end); });
    menu->addAction(tr("Measure it"), &m_view, [this, idle] { m_view.setRange(std::pair(idle.start, idle.end)); });
    menu->addAction(tr("Show it alone"), &m_view, [this, idle] { m_view.showRange(idle.start, idle.end); });
    popUp(*menu, position);
}

void TimelineMenus::showOfRuler(Nanoseconds time, QPoint position)
{
    m_chosen = Chosen::Ruler;
    QMenu* menu = menuOf({"measure", "measureByNumbers", "frameRange"});
    menu->addAction(tr("Remove the measured range"), &m_view, [this] { m_view.setRange(std::nullopt); })
        ->setEnabled(d.readings.range().has_value());
    menu->addSeparator();
    const std::optional<Nanoseconds> mark = d.readings.markNear(time, d.map.markReach());
    const Nanoseconds at = mark.value_or(time);
    const QString text = timeText(at, d.map.axis().nsPerPixel);
    menu->addAction(mark ? tr("Remove the mark at %1").arg(text) : tr("Set a mark at %1").arg(text), &m_view,
                    [this, at] { m_view.toggleMark(at); });
    menu->addAction(tr("Remove all marks"), &m_view,
                    [this] {
                        d.readings.clearMarks();
                        d.overlay.update();
                    })
        ->setEnabled(!d.readings.marks().empty());
    menu->addSeparator();
    menu->addAction(m_view.action(QStringLiteral("showAll")));
    popUp(*menu, position);
}

} // namespace pipewright
