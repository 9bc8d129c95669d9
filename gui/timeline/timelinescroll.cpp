// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelinescroll.h"

#include "gui/timeline/lanes.h"
#include "gui/timeline/shownschedule.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/timeline/timelineview.h"

#include <QAbstractScrollArea>
#include <QScrollBar>
#include <QSignalBlocker>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

constexpr int axisMargin = 10; ///< pixels free before time 0 and after the end

// Zoomed in deeply, the schedule is wider than an int counts pixels; then a step of the scroll bar is several pixels.
double pixelsPerStep(double pixels)
{
    return std::max(1.0, pixels / 1e8);
}

} // namespace

TimelineScroll::TimelineScroll(QAbstractScrollArea& view, Lanes& lanes, const ShownSchedule& shown)
    : m_view(view), m_lanes(lanes), m_shown(shown)
{
    m_axis.left = TimelineView::plotLeft();
}

const std::vector<double>& TimelineScroll::ticks() const
{
    if (m_ticks.empty() || !(m_ticksOf == m_axis)) {
        m_ticksOf = m_axis;
        m_ticks = rulerTicks(m_axis);
    }
    return m_ticks;
}

int TimelineScroll::roomForTime() const
{
    const int viewport = m_view.viewport()->width();
    return std::max(1, viewport - TimelineView::plotLeft() - LanePlaces::idleWidth(viewport));
}

void TimelineScroll::moveTo(TimeAxis axis)
{
    axis.left = TimelineView::plotLeft();
    axis.width = roomForTime();
    axis = clamped(axis, static_cast<double>(std::max<Nanoseconds>(1, m_shown.total())), axisMargin);
    if (axis == m_axis)
        return;
    m_axis = axis;
    updateBars();
    Q_EMIT moved();
}

void TimelineScroll::setAxis(TimeAxis axis)
{
    m_isFramed = false;
    moveTo(axis);
}

void TimelineScroll::showRange(double start, double end)
{
    setAxis(fitted(m_axis, start, end));
}

void TimelineScroll::showAll()
{
    setAxis(fitted(m_axis, 0, static_cast<double>(std::max<Nanoseconds>(1, m_shown.total())), axisMargin));
}

void TimelineScroll::panBy(double pixels)
{
    setAxis(panned(m_axis, pixels));
}

void TimelineScroll::panByMouse(QPoint pixels)
{
    panBy(-pixels.x());
    if (pixels.y() != 0)
        scrollLanes(-pixels.y());
}

void TimelineScroll::scrollLanes(int pixels)
{
    QScrollBar& vertical = *m_view.verticalScrollBar();
    vertical.setValue(vertical.value() + pixels);
}

void TimelineScroll::zoomBy(double factor, double anchorX)
{
    setAxis(zoomed(m_axis, factor,
                   std::clamp(anchorX, static_cast<double>(m_axis.left), static_cast<double>(m_axis.right()))));
}

void TimelineScroll::frame(const std::optional<Block>& block)
{
    const std::optional<LaneBlock> found = block ? m_shown.find(*block) : std::nullopt;
    if (!found || m_isFramed) {
        showAll();
        return;
    }
    // Wide enough around it that its neighbours and dependencies can be read.
    const double start = static_cast<double>(found->start), end = static_cast<double>(found->end);
    const double around = std::max(1.0, end - start) * 8;
    showRange(start - around, end + around);
    ensureVisible(*block);
    m_isFramed = true;
}

void TimelineScroll::ensureVisible(const Block& block)
{
    int device = -1;
    const std::optional<LaneBlock> found = m_shown.find(block, &device);
    if (!found)
        return;
    const double start = m_axis.xOf(static_cast<double>(found->start));
    const double end = m_axis.xOf(static_cast<double>(found->end));
    constexpr double space = 40;
    if (start < m_axis.left + space)
        panBy(start - m_axis.left - space);
    else if (end > m_axis.right() - space)
        panBy(std::min(end - m_axis.right() + space, start - m_axis.left - space));
    ensureLaneVisible(device);
}

void TimelineScroll::ensureLaneVisible(int device)
{
    const LaneStrip& strip = m_lanes.strip();
    if (strip.isPinned(device))
        return;
    const QRect lane = m_lanes.places().lane(device);
    const int top = TimelinePainter::rulerHeight + strip.pinnedTotal(), bottom = m_view.viewport()->height();
    if (lane.top() < top)
        scrollLanes(lane.top() - top);
    else if (lane.bottom() > bottom)
        scrollLanes(lane.bottom() - bottom);
}

bool TimelineScroll::showsWhole() const
{
    const auto all = static_cast<double>(m_shown.total());
    return all == 0 || m_axis == clamped(fitted(m_axis, 0, all, axisMargin), all, axisMargin);
}

void TimelineScroll::keep(bool whole)
{
    if (whole)
        showAll();
    else
        moveTo(m_axis);
}

void TimelineScroll::updateBars()
{
    m_lanes.arrange();
    QScrollBar& vertical = *m_view.verticalScrollBar();
    const int page = std::max(0, m_view.viewport()->height() - TimelinePainter::rulerHeight);
    vertical.setPageStep(page);
    vertical.setSingleStep(m_lanes.places().pitch() / 2);
    vertical.setRange(0, std::max(0, m_lanes.strip().total() - page));

    const double pixels = static_cast<double>(m_shown.total()) / m_axis.nsPerPixel + 2 * axisMargin;
    const double perStep = pixelsPerStep(pixels);
    QScrollBar& horizontal = *m_view.horizontalScrollBar();
    const QSignalBlocker blocker(horizontal);
    horizontal.setPageStep(static_cast<int>(m_axis.width / perStep));
    horizontal.setSingleStep(std::max(1, static_cast<int>(40 / perStep)));
    // A pixel beyond the width comes from rounding, not from being zoomed in.
    horizontal.setRange(0, std::max(0, static_cast<int>((pixels - m_axis.width - 1) / perStep)));
    horizontal.setValue(static_cast<int>(std::lround((m_axis.start / m_axis.nsPerPixel + axisMargin) / perStep)));
}

void TimelineScroll::followTimeBar()
{
    const double pixels = static_cast<double>(m_shown.total()) / m_axis.nsPerPixel + 2 * axisMargin;
    TimeAxis axis = m_axis;
    axis.start = (m_view.horizontalScrollBar()->value() * pixelsPerStep(pixels) - axisMargin) * axis.nsPerPixel;
    setAxis(axis);
}

void TimelineScroll::fitWidth()
{
    const int before = m_axis.width;
    const int width = roomForTime();
    const auto total = static_cast<double>(std::max<Nanoseconds>(1, m_shown.total()));
    const bool whole = m_axis == clamped(fitted(m_axis, 0, total, axisMargin), total, axisMargin);
    // The same stretch of time stays in view; the whole schedule exactly, or rounding would ask for a scroll bar.
    TimeAxis axis = m_axis;
    axis.nsPerPixel *= static_cast<double>(before) / width;
    if (whole) {
        axis.width = width;
        axis = fitted(axis, 0, total, axisMargin);
    }
    updateBars();
    moveTo(axis);
}

} // namespace pipewright

#include "moc_timelinescroll.cpp"
