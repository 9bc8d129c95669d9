// SPDX-License-Identifier: GPL-3.0-or-later
// The lanes of TimelineView: where they stand, which is chosen, and what scrolls them into view.
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineviewprivate.h"

#include <QScrollBar>

namespace pipewright {

int TimelineView::Private::lanePitch() const
{
    // The lanes without a height of their own share what the others leave.
    int own = 0, common = 0;
    for (int device = 0; device < strip.lanes(); ++device) {
        own += strip.hasOwnHeight(device) ? strip.height(device) : strip.subHeight(device);
        common += !strip.hasOwnHeight(device);
    }
    if (common == 0)
        return roomyLane;
    const int available = view.viewport()->height() - TimelinePainter::rulerHeight - own;
    return std::clamp(available / common, common > manyLanes ? stripLane : lowLane, greatLane);
}

void TimelineView::Private::arrangeLanes()
{
    strip.setLanes(lanes());
    strip.setCommonHeight(lanePitch());
    if (currentLane >= lanes())
        currentLane = -1;
}

QRect TimelineView::Private::laneRect(int device) const
{
    if (device < 0 || device >= strip.lanes())
        return {};
    const int scrolled = strip.isPinned(device) ? 0 : view.verticalScrollBar()->value();
    return {0, TimelinePainter::rulerHeight + strip.top(device) - scrolled, view.viewport()->width(),
            strip.height(device)};
}

QRectF TimelineView::Private::blockArea(int device) const
{
    const QRect lane =
        laneRect(device).adjusted(0, 0, 0, device >= 0 && device < strip.lanes() ? -strip.subHeight(device) : 0);
    const int inset = lane.height() >= 60          ? 10
                      : lane.height() >= tightLane ? 7
                      : lane.height() >= namedLane ? 3
                                                   : 0; // outlines and critical marks stand in it
    return QRectF(lane).adjusted(0, inset, 0, -inset - 1);
}

int TimelineView::Private::laneAt(int y) const
{
    const int below = y - TimelinePainter::rulerHeight;
    if (below < 0)
        return -1;
    return strip.laneAt(below < strip.pinnedTotal() ? below : below + view.verticalScrollBar()->value());
}

int TimelineView::Private::laneForKeys() const
{
    const int chosen = view.chosenLane();
    return chosen >= 0 || lanes() == 0 ? chosen : strip.deviceAt(0);
}

int TimelineView::chosenLane() const
{
    if (d->currentLane >= 0)
        return d->currentLane;
    int device = -1;
    if (d->document.selection())
        (void)d->findShown(*d->document.selection(), &device);
    return device;
}

void TimelineView::Private::chooseLane(int lane)
{
    currentLane = lane;
    chosen = Chosen::Lane;
    view.viewport()->update();
    Q_EMIT view.lanesChanged();
}

void TimelineView::Private::chooseLaneBy(int rows)
{
    const int now = view.chosenLane();
    if (lanes() == 0)
        return;
    // Before any is chosen, the first one is next.
    const int row = now < 0 ? 0 : std::clamp(strip.rowOf(now) + rows, 0, lanes() - 1);
    chooseLane(strip.deviceAt(row));
    ensureLaneVisible(currentLane);
    Q_EMIT view.hovered(laneDescription(document.design(), currentLane));
}

void TimelineView::Private::ensureLaneVisible(int device)
{
    if (strip.isPinned(device))
        return;
    QScrollBar& vertical = *view.verticalScrollBar();
    const QRect lane = laneRect(device);
    const int top = TimelinePainter::rulerHeight + strip.pinnedTotal(), bottom = view.viewport()->height();
    if (lane.top() < top)
        vertical.setValue(vertical.value() + lane.top() - top);
    else if (lane.bottom() > bottom)
        vertical.setValue(vertical.value() + lane.bottom() - bottom);
}

void TimelineView::setLaneHeight(int device, int height)
{
    if (device < 0 || device >= d->strip.lanes())
        return;
    if (height <= LaneStrip::foldedHeight)
        d->strip.setFolded(device, true);
    else
        d->strip.setHeight(device, height);
    d->lanesChanged();
}

void TimelineView::setHeightOfLanes(int height)
{
    if (height <= LaneStrip::foldedHeight) {
        for (int device = 0; device < d->strip.lanes(); ++device)
            d->strip.setFolded(device, true);
    } else {
        d->strip.setHeightOfAll(height);
    }
    d->lanesChanged();
}

void TimelineView::setLaneRow(int device, int row)
{
    if (device < 0 || device >= d->strip.lanes())
        return;
    d->strip.move(device, row);
    d->lanesChanged();
}

void TimelineView::Private::lanesChanged()
{
    updateScrollBars();
    updateOverlay();
    view.updateGeometry();
    view.viewport()->update();
    Q_EMIT view.lanesChanged();
}

const LaneStrip& TimelineView::lanes() const
{
    return d->strip;
}

int TimelineView::Private::heightWith(int pitch) const
{
    LaneStrip such = strip;
    such.setLanes(lanes());
    such.setCommonHeight(pitch);
    return TimelinePainter::rulerHeight + std::max(such.total(), tightLane);
}

int TimelineView::naturalHeight() const
{
    return d->heightWith(Private::roomyLane);
}

int TimelineView::greatestHeight() const
{
    return d->heightWith(Private::greatLane);
}

// ---- By mouse -------------------------------------------------------------------------------------

std::optional<int> TimelineView::Private::laneEdgeAt(QPoint position) const
{
    constexpr int reach = 4; // pixels beside the line below a lane that still grip it
    if (position.x() >= plotLeft())
        return std::nullopt;
    const int above = laneAt(position.y() - reach), here = laneAt(position.y());
    if (above >= 0 && above != here)
        return above;
    if (here >= 0 && laneRect(here).bottom() - position.y() < reach)
        return here;
    return std::nullopt;
}

} // namespace pipewright
