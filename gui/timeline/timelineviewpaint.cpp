// SPDX-License-Identifier: GPL-3.0-or-later
// Painting of TimelineView: only the visible lanes, each from geometry bounded by pixels.
#include "gui/timeline/timelineviewprivate.h"

#include <QElapsedTimer>
#include <QPaintEvent>
#include <QPainter>
#include <QScrollBar>

namespace pipewright {
void TimelineView::paintEvent(QPaintEvent* event)
{
    QElapsedTimer timer;
    timer.start();
    {
        QPainter painter(viewport());
        d->paint(painter, event->rect());
    }
    if (!d->frames.isOn)
        return;
    const std::optional<double> worst = d->frames.add(static_cast<double>(timer.nsecsElapsed()) / 1e6);
    if (!worst)
        return;
    OverlayContent content = d->overlay->content();
    content.frameTime = tr("worst paint %1\u00a0ms").arg(*worst, 0, 'f', 2);
    // Showing it from within the paint would schedule the next one; whatever repaints next brings it up.
    QMetaObject::invokeMethod(
        this, [this, content] { d->overlay->setContent(content); }, Qt::QueuedConnection);
}

void TimelineView::Private::paint(QPainter& painter, const QRect& exposed)
{
    const Theme& theme = Theme::of(view);
    if (!lanePainter || !lanePainter->isFor(theme, scale()))
        lanePainter.emplace(theme, scale());
    const std::vector<double>& ticks = this->ticks();
    const QRect viewportRect = view.viewport()->rect();

    const int belowPinned = TimelinePainter::rulerHeight + strip.pinnedTotal();
    const int bottom = TimelinePainter::rulerHeight + strip.total() - view.verticalScrollBar()->value();
    // Lanes scroll underneath the pinned ones.
    const auto paintLanes = [&](bool pinned, const QRect& area) {
        const QRect visible = exposed.intersected(area);
        for (int row = 0; row < strip.lanes() && !visible.isEmpty(); ++row) {
            const int device = strip.deviceAt(row);
            painter.setClipRect(visible);
            if (strip.isPinned(device) == pinned && places.lane(device).intersects(visible))
                paintLane(painter, device, visible, ticks);
        }
        painter.setClipRect(visible);
        paintStripNames(painter, visible, pinned);
    };
    paintLanes(false, viewportRect.adjusted(0, belowPinned, 0, 0));
    paintLanes(true, QRect(0, TimelinePainter::rulerHeight, viewportRect.width(), strip.pinnedTotal()));
    painter.setClipRect(exposed);
    painter.fillRect(QRect(0, bottom, viewportRect.width(), viewportRect.height() - bottom), theme.background);
    if (strip.pinnedTotal() > 0)
        painter.fillRect(QRect(0, belowPinned - 2, viewportRect.width(), 2), theme.hairline);

    // The ruler comes last: lanes scroll underneath it.
    painter.setClipRect(exposed);
    lanePainter->ruler(painter, view.m_axis, QRect(0, 0, viewportRect.width(), TimelinePainter::rulerHeight), ticks);
    paintLegend(painter);
}

void TimelineView::Private::paintStripNames(QPainter& painter, const QRect& visible, bool pinned) const
{
    if (visible.left() >= plotLeft())
        return;
    const Theme& theme = Theme::of(view);
    painter.setFont(Theme::words(TextSize::Small, QFont::DemiBold));
    int free = 0; // from here on no name is in the way
    for (int row = 0; row < strip.lanes(); ++row) {
        const int device = strip.deviceAt(row);
        const QRect lane = places.lane(device);
        if (strip.isPinned(device) != pinned || lane.height() >= LanePlaces::namedLane
            || static_cast<std::size_t>(device) >= headers.size())
            continue;
        const QRect place(18, lane.center().y() - LanePlaces::namedLane / 2, plotLeft() - 32,
                          LanePlaces::namedLane + 1);
        if (row > 0 && place.top() < free)
            continue;
        free = place.bottom() + 1;
        painter.setPen(device == currentLane ? theme.text : theme.dim);
        if (place.intersects(visible))
            painter.drawText(place, Qt::AlignLeft | Qt::AlignVCenter, headers[device].name);
    }
}

std::optional<LaneGeometry> TimelineView::Private::outlined(int device, const QRectF& area) const
{
    const auto index = static_cast<std::size_t>(device);
    if (showsMeasured()) {
        const TimelineLayout* const outlines = layouts.outlines();
        if (!showsBoth() || showHeat || !outlines || index >= outlines->lanes().size()) // heat is painted first
            return std::nullopt;
        return laneGeometry(outlines->lanes()[index], view.m_axis, area, std::max(shown().makespan(), Nanoseconds{0}),
                            scale());
    }
    // A drag is compared with the present state, and that with the one before it. Blocks that stay where they are need
    // no outline.
    const TimelineLayout* from = layouts.preview() ? &layout() : showBefore ? layouts.before() : nullptr;
    if (!from || index >= from->lanes().size())
        return std::nullopt;
    const Lane& lane = from->lanes()[index];
    LaneGeometry geometry = laneGeometry(lane, view.m_axis, area, std::max(from->makespan(), Nanoseconds{0}), scale());
    const TimelineLayout& now = shown();
    std::erase_if(geometry.blocks, [&](const BlockRect& item) {
        const LaneBlock& block = lane.blocks()[item.index];
        const LaneBlock* stands = now.blockOf(block.block);
        return stands && stands->start == block.start && stands->end == block.end;
    });
    return geometry;
}

void TimelineView::Private::paintLane(QPainter& painter, int device, const QRect& exposed,
                                      const std::vector<double>& ticks)
{
    const TimelinePainter& lanePainter = *this->lanePainter;
    const Theme& theme = Theme::of(view);
    const TimeAxis& axis = view.m_axis;
    const QRect lane = places.lane(device);
    const QRectF area = places.blocks(device);
    const auto index = static_cast<std::size_t>(device);
    const TimelineLayout& filled = shown();

    const bool target = plan && plan->device == device && plan->request;
    LaneGround ground{lane, target && plan->legal && !plan->room, std::nullopt, {}};
    if (target && plan->room)
        ground.room = {axis.xOf(static_cast<double>(plan->room->first)),
                       axis.xOf(static_cast<double>(plan->room->second))};
    const QRect above = lane.adjusted(0, 0, 0, -strip.subHeight(device) - 1); // the line and the sub-lanes
    if (index < filled.lanes().size())
        ground.painted = above;
    lanePainter.ground(painter, axis, ground, ticks);
    const std::vector<LaneHeader>& laneHeaders = previewHeaders.empty() ? headers : previewHeaders;
    if (above.height() < LanePlaces::namedLane) { // paintStripNames() has its name
        if (device == currentLane)
            painter.fillRect(QRect(lane.left(), lane.top(), 3, lane.height()), theme.accent);
    } else if (index < laneHeaders.size() && exposed.left() < plotLeft()) {
        const QRect place(lane.left(), lane.top(), plotLeft(), above.height());
        const LaneStanding standing{device == currentLane, strip.isPinned(device), strip.isFolded(device)};
        if (ground.target)
            lanePainter.header(painter, place, laneHeaders[index], standing);
        else
            lanePainter.keptHeader(painter, index, place, laneHeaders[index], standing);
    }

    if (memberLanes.membersOf(device) > 0 && !strip.isFolded(device)) {
        painter.setFont(Theme::words(TextSize::Normal));
        painter.setPen(theme.dim);
        painter.drawText(places.unfolder(device), Qt::AlignCenter,
                         strip.members(device) > 0 ? QStringLiteral("▾") : QStringLiteral("▸"));
    }
    memberLanes.paint(painter, device, places.members(device), axis, theme, showsMeasured(),
                      !showsMeasured() || showsBoth());
    kernelLanes.paint(painter, device, places.kernels(device), axis, theme, showsMeasured());
    transferLanes.paint(painter, device, places.transfers(device), axis, transferTimes(), theme,
                        view.selectedTransfer());

    painter.save();
    painter.setClipRect(QRect(axis.left, lane.top(), axis.width, lane.height()), Qt::IntersectClip);
    const Nanoseconds idleUntil = std::max(filled.makespan(), Nanoseconds{0});
    if (index < filled.lanes().size()) {
        const Lane& blocks = filled.lanes()[index];
        const LaneGeometry geometry = laneGeometry(blocks, axis, area, idleUntil, scale());
        const std::optional<LaneGeometry> outlined = this->outlined(device, area);
        lanePainter.blocks(painter, axis, ground, ticks, area, blocks, geometry, outlined ? &*outlined : nullptr);
        if (showSlack && !layouts.preview())
            slack.shade(painter, blocks, axis, area, scale(), theme.lane);
        if (!group.empty())
            lanePainter.group(painter, blocks, geometry,
                              [this](const LaneBlock& block) { return group.contains(block.block); });
        if (showCritical && !slack.isEmpty() && !layouts.preview()) {
            lanePainter.critical(painter, blocks, geometry, [this](const LaneBlock& block) {
                return block.task != none && slack.isCritical(block.task);
            });
        }
        if (showsBoth())
            paintMeasured(painter, device, blocks, geometry, area);
    }
    const Gesture::HeldBlock* const moving = movingBlock();
    const std::optional<Block> selected = moving ? std::optional(moving->block) : document.selection();
    if (selected) {
        int on = -1;
        const std::optional<LaneBlock> block = findShown(*selected, &on);
        if (block && on == device)
            lanePainter.selection(painter, blockRect(*block, axis, area, scale()), theme.selection);
    }
    painter.restore();
}

} // namespace pipewright
