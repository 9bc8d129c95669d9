// SPDX-License-Identifier: GPL-3.0-or-later
// The lanes of TimelineView: where they stand, which is chosen, and what scrolls them into view.
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineviewprivate.h"

#include <QScrollBar>

namespace pipewright {

void TimelineView::Private::arrangeLanes()
{
    strip.setLanes(lanes());
    strip.setCommonHeight(places.pitch());
    if (currentLane >= lanes())
        currentLane = -1;
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
    const QRect lane = places.lane(device);
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
    wantMembers();
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

int TimelineView::naturalHeight() const
{
    return d->places.heightWith(d->lanes(), LanePlaces::roomyLane);
}

int TimelineView::greatestHeight() const
{
    return d->places.heightWith(d->lanes(), LanePlaces::greatLane);
}

} // namespace pipewright
