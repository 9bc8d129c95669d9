// SPDX-License-Identifier: GPL-3.0-or-later
// Lanes of groups that are unfolded into their members.
#include "gui/timeline/timelineviewprivate.h"

#include <QAction>

#include <algorithm>

namespace pipewright {

QString TimelineView::Private::memberTextAt(QPoint position) const
{
    const int device = places.membersAt(position);
    if (device < 0)
        return {};
    const QRectF area = places.members(device);
    if (position.x() >= plotLeft() && showsMeasured())
        if (const QString measured = memberLanes.measuredText(device, memberLanes.rowAt(device, area, position.y()),
                                                              view.m_axis.timeAt(position.x()));
            !measured.isEmpty())
            return measured;
    if (position.x() >= plotLeft() && !showsMeasured())
        for (const MemberLanes::Rect& part : memberLanes.rects(device, area, view.m_axis))
            if (part.rect.united(part.wait).contains(position))
                return memberLanes.text(device, part);
    return memberLanes.rowText(device, memberLanes.rowAt(device, area, position.y()));
}

void TimelineView::Private::showMembers(int device, bool shown)
{
    const int members = memberLanes.membersOf(device);
    if (shown && members == 0) {
        Q_EMIT view.editRefused(TimelineView::tr("%1 is a single device: a group of devices has members")
                                    .arg(deviceLabel(document.design(), device)));
        return;
    }
    strip.setMembers(device, shown ? members : 0);
    lanesChanged();
}

/// After another design: as many rows as its groups have members.
void TimelineView::Private::wantMembers()
{
    bool any = false;
    for (int lane = 0; lane < strip.lanes(); ++lane) {
        if (strip.members(lane) > 0)
            strip.setMembers(lane, memberLanes.membersOf(lane));
        any = any || strip.members(lane) > 0;
    }
    forecast.want(any);
}

void TimelineView::Private::addMemberActions()
{
    QObject::connect(&forecast, &MemberForecast::changed, &view, [this] {
        view.viewport()->update();
        Q_EMIT view.membersChanged();
    });
    addAction("laneMembers", TimelineView::tr("Unfold the lane into its members"),
              TimelineView::tr("Below a group's blocks, what each of its devices does of them, and waits for"),
              Qt::Key_J, [this] {
                  const int lane = laneForKeys();
                  if (lane >= 0)
                      showMembers(lane, strip.members(lane) == 0);
              });
    addAction("allMembers", TimelineView::tr("Unfold all groups into their members"),
              TimelineView::tr("Or fold them all, when they are unfolded"), Qt::SHIFT | Qt::Key_J, [this] {
                  bool any = false, all = true;
                  for (int lane = 0; lane < strip.lanes(); ++lane)
                      if (memberLanes.membersOf(lane) > 0) {
                          any = true;
                          all = all && strip.members(lane) > 0;
                      }
                  if (!any)
                      return Q_EMIT view.editRefused(
                          TimelineView::tr("No device is a group: see Shard a stage over devices"));
                  for (int lane = 0; lane < strip.lanes(); ++lane)
                      if (memberLanes.membersOf(lane) > 0)
                          showMembers(lane, !all);
              });
}

MemberForecast& TimelineView::memberForecast()
{
    return d->forecast;
}

std::vector<std::pair<QRectF, QString>> TimelineView::visibleMemberParts(int device) const
{
    std::vector<std::pair<QRectF, QString>> result;
    for (const MemberLanes::Rect& part : d->memberLanes.rects(device, d->places.members(device), m_axis))
        result.emplace_back(part.rect, d->memberLanes.text(device, part));
    return result;
}

QString TimelineView::textOfMember(int device, int member) const
{
    return d->memberLanes.rowText(device, member);
}

} // namespace pipewright
