// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/collectivedrag.h"

#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QMouseEvent>

namespace pipewright {

bool CollectiveDrag::press(TimelineParts& d, const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    const std::optional<MemberLanes::Rect> rect = d.map.memberPartAt(position);
    const int device = d.lanes.places().membersAt(position);
    const MemberForecast::Part* const part = rect ? d.members.part(device, *rect) : nullptr;
    if (part == nullptr)
        return false;
    d.selection.clear();
    d.menus.setChosen(TimelineMenus::Chosen::Block);
    d.hand.left = std::make_unique<CollectiveDrag>(d, device, *part, position);
    return true;
}

void CollectiveDrag::move(const QMouseEvent& event)
{
    m_at = event.position().toPoint();
    if (!m_moving && !isBeyondStart(m_pressedAt, m_at))
        return;
    m_moving = true;
    m_later = m_at.x() > m_pressedAt.x();
    const auto start = static_cast<double>(m_part.start);
    const double time = d.map.axis().timeAt(m_at.x());
    m_passed.clear();
    if (m_part.collective)
        m_passed =
            m_later ? d.members.sentBetween(m_device, start, time) : d.members.sentBetween(m_device, time, start);
    d.view.viewport()->setCursor(Qt::ClosedHandCursor);
    d.overlay.setCursor(m_at);
    const MoveCollective moved{collective(), m_passed, m_later};
    if (m_passed.empty())
        d.drop.clear();
    else if (!d.drop.plan() || d.drop.plan()->request != EditRequest(moved))
        d.drop.holdCollective(moved, (m_later ? TimelineView::tr("%1 after %2") : TimelineView::tr("%1 before %2"))
                                         .arg(d.transfers.name(moved.collective),
                                              d.transfers.name(m_later ? m_passed.back() : m_passed.front())));
    d.overlay.update();
}

void CollectiveDrag::addTo(OverlayContent& content) const
{
    if (!m_moving)
        return;
    const QRectF area = d.lanes.places().members(m_device);
    content.caret = QLineF(m_at.x(), area.top(), m_at.x(), area.bottom());
    if (d.drop.plan()) // which says more
        return;
    content.legal = false;
    content.title = m_part.collective ? TimelineView::tr("its group sends nothing in between")
                                      : TimelineView::tr("a part moves with its block");
}

void CollectiveDrag::release(const QMouseEvent&)
{
    d.view.viewport()->setCursor(Qt::ArrowCursor);
    d.overlay.update();
    if (!m_moving)
        return;
    if (d.drop.plan())
        d.drop.commit();
    else if (m_part.collective)
        d.document.applyLater({MoveCollective{collective(), m_passed, m_later}}); // which says why not
    else
        Q_EMIT d.view.editRefused(
            TimelineView::tr("A member's part moves with its block: drag %1 in the lane above, or "
                             "change the shares of its stage")
                .arg(blockText(m_part.block)));
}

} // namespace pipewright
