// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lanedrag.h"

#include "gui/timeline/timelineviewprivate.h"

#include <QAction>
#include <QMouseEvent>

#include <tuple>

namespace pipewright {

bool LaneDrag::press(TimelineView::Private& d, const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (position.x() >= TimelineView::plotLeft() || position.y() < TimelinePainter::rulerHeight)
        return false;
    const std::optional<int> edge = d.places.edgeAt(position);
    const int lane = edge ? *edge : d.places.at(position.y());
    if (lane < 0)
        return false;
    d.chooseLane(lane);
    if (!edge && d.memberLanes.membersOf(lane) > 0 && d.places.unfolder(lane).contains(position)) {
        d.showMembers(lane, d.strip.members(lane) == 0);
        return true;
    }
    auto drag = std::make_unique<LaneDrag>(d);
    drag->m_device = lane;
    drag->m_byEdge = edge.has_value();
    drag->m_all = (event.modifiers() & Qt::ShiftModifier) != 0;
    drag->m_pressedAt = position;
    drag->m_before = d.strip;
    d.gesture = std::move(drag);
    return true;
}

void LaneDrag::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    LaneStrip& strip = d.strip;
    if (!m_moving && !isBeyondStart(m_pressedAt, position))
        return;
    m_moving = true;
    if (m_byEdge) {
        const int height = m_before.height(m_device) + position.y() - m_pressedAt.y();
        if (m_all)
            strip.setHeightOfAll(height);
        else
            strip.setHeight(m_device, height);
        d.lanesChanged();
        return;
    }
    view.viewport()->setCursor(Qt::ClosedHandCursor);
    // Past the middle of another lane the two change places; a lane's edge would make unequal ones jump.
    const int over = d.places.at(position.y());
    if (over < 0 || over == m_device)
        return;
    const int row = strip.rowOf(over);
    const bool down = row > strip.rowOf(m_device);
    const int middle = d.places.lane(over).center().y();
    if (down ? position.y() > middle : position.y() < middle) {
        strip.move(m_device, row);
        d.lanesChanged();
    }
}

void LaneDrag::cancel()
{
    d.strip = m_before;
    d.lanesChanged();
}

// ---- By key ---------------------------------------------------------------------------------------

void TimelineView::Private::addLaneActions()
{
    const auto add = [this](const char* name, const QString& text, const QKeySequence& key, auto change) {
        auto* action = new QAction(text, &view);
        action->setObjectName(QLatin1String(name));
        action->setShortcut(key);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        QObject::connect(action, &QAction::triggered, &view, [this, change] {
            const int lane = laneForKeys();
            if (lane < 0)
                return;
            change(lane);
            lanesChanged();
        });
        view.addAction(action);
        return action;
    };
    for (const auto& [name, key, rows] :
         {std::tuple("chooseLaneAbove", Qt::Key_Up, -1), {"chooseLaneBelow", Qt::Key_Down, 1}}) {
        auto* choose = new QAction(rows < 0 ? tr("Choose the lane above") : tr("Choose the lane below"), &view);
        choose->setObjectName(QLatin1String(name));
        choose->setShortcut(Qt::SHIFT | key);
        choose->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        QObject::connect(choose, &QAction::triggered, &view, [this, rows = rows] { chooseLaneBy(rows); });
        view.addAction(choose);
    }
    constexpr int step = 10;
    add("lanePin", tr("Pin the lane to the top"), Qt::Key_P, [this](int lane) {
        strip.setPinned(lane, !strip.isPinned(lane));
    })->setCheckable(true);
    add("laneFold", tr("Fold the lane"), Qt::Key_L, [this](int lane) {
        strip.setFolded(lane, !strip.isFolded(lane));
    })->setCheckable(true);
    add("laneUp", tr("Lane one row up"), Qt::CTRL | Qt::Key_Up,
        [this](int lane) { strip.move(lane, strip.rowOf(lane) - 1); });
    add("laneDown", tr("Lane one row down"), Qt::CTRL | Qt::Key_Down,
        [this](int lane) { strip.move(lane, strip.rowOf(lane) + 1); });
    add("laneHigher", tr("Lane higher"), Qt::CTRL | Qt::SHIFT | Qt::Key_Down,
        [this](int lane) { strip.setHeight(lane, strip.height(lane) + step); });
    add("laneLower", tr("Lane lower"), Qt::CTRL | Qt::SHIFT | Qt::Key_Up,
        [this](int lane) { strip.setHeight(lane, strip.height(lane) - step); });
    add("lanesHigher", tr("All lanes higher"), Qt::CTRL | Qt::SHIFT | Qt::Key_PageDown,
        [this](int lane) { strip.setHeightOfAll(strip.height(lane) + step); });
    add("lanesLower", tr("All lanes lower"), Qt::CTRL | Qt::SHIFT | Qt::Key_PageUp,
        [this](int lane) { strip.setHeightOfAll(strip.height(lane) - step); });
    add("lanesReset", tr("Lanes as they were"), Qt::CTRL | Qt::SHIFT | Qt::Key_Home, [this](int) { strip.reset(); });
}

} // namespace pipewright
