// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/rulerdrag.h"

#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QMouseEvent>

namespace pipewright {

bool RulerDrag::press(TimelineParts& d, const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (position.y() >= TimelinePainter::rulerHeight || position.x() < d.map.axis().left)
        return false;
    auto drag = std::make_unique<RulerDrag>(d);
    drag->m_from = d.map.timeNear(event.position().x(), position.y(), event.modifiers());
    drag->m_before = d.readings.range();
    d.hand.left = std::move(drag);
    return true;
}

void RulerDrag::move(const QMouseEvent& event)
{
    m_moving = true;
    d.view.setRange(
        std::pair(m_from, d.map.timeNear(event.position().x(), event.position().toPoint().y(), event.modifiers())));
}

void RulerDrag::release(const QMouseEvent&)
{
    if (!m_moving || (d.readings.range() && d.readings.range()->first == d.readings.range()->second))
        d.view.setRange(std::nullopt);
}

void RulerDrag::cancel()
{
    d.view.setRange(m_before);
}

} // namespace pipewright
