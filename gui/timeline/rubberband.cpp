// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/rubberband.h"

#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QMouseEvent>

namespace pipewright {

bool RubberBand::press(TimelineParts& d, const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    d.selection.clear();
    d.menus.setChosen(TimelineMenus::Chosen::Block);
    if (!d.map.plot().contains(position))
        return false;
    d.overlay.setCursor(position);
    d.hand.left = std::make_unique<RubberBand>(d, position);
    return true;
}

void RubberBand::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (d.overlay.cursor() != m_from || isBeyondStart(m_from, position))
        d.overlay.setCursor(position);
    d.overlay.update();
}

void RubberBand::release(const QMouseEvent&)
{
    if (d.overlay.cursor() != m_from)
        d.selection.select(d.map.blocksIn(QRect(m_from, d.overlay.cursor()).normalized()));
    else if (const std::optional<IdleTime> idle = d.map.idleAt(m_from))
        Q_EMIT d.view.gapClicked(idle->device, idle->start, idle->end);
    d.overlay.update();
}

void RubberBand::addTo(OverlayContent& content) const
{
    if (d.overlay.cursor() != m_from)
        content.band = QRectF(QRect(m_from, d.overlay.cursor()).normalized());
}

} // namespace pipewright
