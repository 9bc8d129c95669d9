// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lanegeometry.h"

#include "gui/timeline/levelofdetail.h"

#include <algorithm>

namespace pipewright {
namespace {

constexpr double gapFromWidth = 4; // blocks at least this wide leave a pixel to the next one
constexpr double idleWidth = 3;    // narrower idle time looks like a gap between blocks

QRectF rectOfColumns(int first, int last, const QRectF& area, double scale)
{
    const double width = (last - first) / scale;
    // The gap is one device-independent pixel, so it stays visible on dense screens.
    return {first / scale, area.top(), width >= gapFromWidth ? width - 1 : width, area.height()};
}

} // namespace

std::int64_t LaneGeometry::primitives() const
{
    std::size_t count = blocks.size() + idle.size();
    for (const std::vector<QRectF>& rects : merged)
        count += rects.size();
    return static_cast<std::int64_t>(count);
}

QRectF blockRect(const LaneBlock& block, const TimeAxis& axis, const QRectF& area, double scale)
{
    const auto [first, last] = columns(axis, static_cast<double>(block.start), static_cast<double>(block.end), scale);
    return rectOfColumns(first, last, area, scale);
}

LaneGeometry laneGeometry(const Lane& lane, const TimeAxis& axis, const QRectF& area, Nanoseconds total, double scale)
{
    LaneGeometry geometry;
    const std::vector<LaneBlock>& blocks = lane.blocks();
    const auto [individual, column] = levelOfDetail(lane, axis, scale);
    const int origin = columns(axis, 0, 0, scale).first;
    const int windowEnd = static_cast<int>(axis.right() * scale);

    // Idle time is measured between what was drawn; the first stretch begins at time zero.
    int drawnUntil = std::max(static_cast<int>(axis.left * scale), origin);
    const auto idleUntil = [&](int until) {
        // The shape before already left a pixel free; one more keeps idle time off the next block.
        if ((until - drawnUntil) / scale >= idleWidth)
            geometry.idle.emplace_back(drawnUntil / scale, area.top(), (until - drawnUntil) / scale - 1, area.height());
    };

    const LaneLabels labels(lane, axis.nsPerPixel, area.height());
    MergedColumns merged(lane, axis, area, scale);
    std::size_t i = lane.firstEndingAfter(axis.start);
    while (i < blocks.size() && static_cast<double>(blocks[i].start) < axis.end()) {
        ++geometry.visited;
        const auto [first, last] =
            columns(axis, static_cast<double>(blocks[i].start), static_cast<double>(blocks[i].end), scale);
        idleUntil(first);
        if (last - first >= individual) {
            geometry.blocks.push_back({rectOfColumns(first, last, area, scale), i, labels.of(blocks[i])});
            drawnUntil = std::max(drawnUntil, last);
            ++i;
            continue;
        }
        // One column, on a grid that moves with the content so that scrolling does not change it. Everything
        // that starts in it is done in one step; a wide block can only be the last of them, since the
        // others end before it starts, and it ends the column.
        // The block before may reach into this column, so it begins where the last one ended.
        const int from = (first - drawnUntil) / scale >= idleWidth ? first : drawnUntil;
        int until = origin + ((from - origin) / column + 1) * column;
        std::size_t next = std::max(i + 1, lane.firstStartingFrom(axis.timeAt(until / scale), i + 1));
        if (next - 1 > i) {
            ++geometry.visited;
            const auto [f, l] = columns(axis, static_cast<double>(blocks[next - 1].start),
                                        static_cast<double>(blocks[next - 1].end), scale);
            if (l - f >= individual) {
                until = std::max(from + 1, f);
                --next;
            }
        }
        // The last block may reach beyond the column: where no block follows soon, that time is busy and not idle.
        until = std::max(until, columns(axis, static_cast<double>(blocks[next - 1].start),
                                        static_cast<double>(blocks[next - 1].end), scale)
                                    .second);
        merged.stack(from / scale, until / scale, i, geometry.merged);
        drawnUntil = until;
        i = next;
    }
    idleUntil(std::min(windowEnd, columns(axis, static_cast<double>(total), static_cast<double>(total), scale).first));
    return geometry;
}

QRectF gradientSumRect(const LaneSum& sum, const TimeAxis& axis, const QRectF& area)
{
    const double from = axis.xOf(static_cast<double>(sum.start)), to = axis.xOf(static_cast<double>(sum.end));
    return {from, area.top(), std::max(1.0, to - from), area.height()};
}

} // namespace pipewright
