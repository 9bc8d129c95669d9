// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lanedrag.h"

#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QMouseEvent>

namespace pipewright {

bool LaneDrag::press(TimelineParts& d, const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (position.x() >= TimelineView::plotLeft() || position.y() < TimelinePainter::rulerHeight)
        return false;
    const std::optional<int> edge = d.lanes.places().edgeAt(position);
    const int lane = edge ? *edge : d.lanes.places().at(position.y());
    if (lane < 0)
        return false;
    d.lanes.choose(lane);
    if (!edge && d.map.unfolderAt(position) == lane) {
        d.view.showMembers(lane, d.lanes.strip().members(lane) == 0);
        return true;
    }
    auto drag = std::make_unique<LaneDrag>(d);
    drag->m_device = lane;
    drag->m_byEdge = edge.has_value();
    drag->m_all = (event.modifiers() & Qt::ShiftModifier) != 0;
    drag->m_pressedAt = position;
    drag->m_before = d.lanes.strip();
    d.hand.left = std::move(drag);
    return true;
}

void LaneDrag::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (!m_moving && !isBeyondStart(m_pressedAt, position))
        return;
    m_moving = true;
    if (m_byEdge) {
        const int height = m_before.height(m_device) + position.y() - m_pressedAt.y();
        d.lanes.change([&](LaneStrip& strip) {
            if (m_all)
                strip.setHeightOfAll(height);
            else
                strip.setHeight(m_device, height);
        });
        return;
    }
    d.view.viewport()->setCursor(Qt::ClosedHandCursor);
    // The lanes change places when the cursor passes the middle of the other lane. With its edge as the limit, lanes of
    // unequal height would jump back and forth.
    const int over = d.lanes.places().at(position.y());
    if (over < 0 || over == m_device)
        return;
    const int row = d.lanes.strip().rowOf(over);
    const bool down = row > d.lanes.strip().rowOf(m_device);
    const int middle = d.lanes.places().lane(over).center().y();
    if (down ? position.y() > middle : position.y() < middle)
        d.lanes.change([&](LaneStrip& strip) { strip.move(m_device, row); });
}

void LaneDrag::cancel()
{
    d.lanes.change([this](LaneStrip& strip) { strip = m_before; });
}

} // namespace pipewright
