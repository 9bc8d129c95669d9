// SPDX-License-Identifier: GPL-3.0-or-later
// Lanes of groups that are unfolded into their members.
#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

namespace pipewright {

void TimelineView::showMembers(int device, bool shown)
{
    const int members = d->members.membersOf(device);
    if (shown && members == 0) {
        Q_EMIT editRefused(
            tr("%1 is a single device: a group of devices has members").arg(deviceLabel(d->document.design(), device)));
        return;
    }
    d->lanes.change([&](LaneStrip& strip) { strip.setMembers(device, shown ? members : 0); });
}

/// After a change of the design: gives each unfolded group as many rows as it has members.
void TimelineView::refreshMembers()
{
    const LaneStrip& strip = d->lanes.strip();
    bool any = false, others = false;
    for (int lane = 0; lane < strip.lanes(); ++lane) {
        any = any || strip.members(lane) > 0;
        others = others || (strip.members(lane) > 0 && strip.members(lane) != d->members.membersOf(lane));
    }
    if (others)
        return d->lanes.change([this](LaneStrip& to) { // which calls this function again
            for (int lane = 0; lane < to.lanes(); ++lane)
                if (to.members(lane) > 0)
                    to.setMembers(lane, d->members.membersOf(lane));
        });
    d->forecast.want(any);
}

MemberForecast& TimelineView::memberForecast()
{
    return d->forecast;
}

std::vector<std::pair<QRectF, QString>> TimelineView::visibleMemberParts(int device) const
{
    std::vector<std::pair<QRectF, QString>> result;
    for (const MemberLanes::Rect& part : d->members.rects(device, d->lanes.places().members(device), axis()))
        result.emplace_back(part.rect, d->members.text(device, part));
    return result;
}

QString TimelineView::textOfMember(int device, int member) const
{
    return d->members.rowText(device, member);
}

} // namespace pipewright
