// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lanegeometry.h"

namespace pipewright {
namespace {

constexpr double individualWidth = 2;  // pixels from which a block is drawn by itself
constexpr double mergedWidth = 2;      // pixels of a column of merged blocks
constexpr double gapFromWidth = 4;     // blocks at least this wide leave a pixel to the next one
constexpr double letterWidth = 11, numberWidth = 16, stageWidth = 34;
constexpr double idleWidth = 3;        // narrower idle time cannot be told from a gap

BlockText textFor(double width, double height, bool severalChunks)
{
    if (width < letterWidth || height < 14)
        return BlockText::None;
    if (width < numberWidth || height < 32)
        return BlockText::Letter;
    return severalChunks && width >= stageWidth ? BlockText::LetterStageAndNumber : BlockText::LetterAndNumber;
}

QRectF rectOfColumns(int first, int last, const QRectF& area, double scale)
{
    const double width = (last - first) / scale;
    // The gap is one device-independent pixel, so it stays visible on dense screens.
    return {first / scale, area.top(), width >= gapFromWidth ? width - 1 : width, area.height()};
}

// One column of merged blocks, filled from below in the order of the operations.
void stack(LaneGeometry& geometry, const std::array<Nanoseconds, opCount>& times, double columnTime, double x,
           double width, const QRectF& area, double scale)
{
    double busy = 0;
    for (const Nanoseconds time : times)
        busy += static_cast<double>(time);
    if (busy <= 0)
        return;
    // Blocks that reach beyond the column are counted whole, so the sum can exceed the column's time.
    const double heightPerTime = area.height() / std::max(columnTime, busy);
    double bottom = area.bottom();
    for (std::size_t op = 0; op < times.size(); ++op) {
        if (times[op] <= 0)
            continue;
        const double height = std::max(1.0, std::round(static_cast<double>(times[op]) * heightPerTime * scale)) / scale;
        const double top = std::max(area.top(), bottom - height);
        geometry.merged[op].emplace_back(x, top, width, bottom - top);
        bottom = top;
    }
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
    const int individual = std::max(1, static_cast<int>(individualWidth * scale));
    const int columnWidth = std::max(1, static_cast<int>(mergedWidth * scale));
    const int windowEnd = static_cast<int>(axis.right() * scale);
    const int windowStart = static_cast<int>(axis.left * scale);

    // Idle time is measured between what was drawn; the first stretch begins at time zero.
    int drawnUntil = std::max(windowStart, columns(axis, 0, 0, scale).first);
    const auto idleUntil = [&](int column) {
        if ((column - drawnUntil) / scale >= idleWidth) {
            // Whoever drew last left a pixel free already; one more keeps idle time off the next block.
            geometry.idle.emplace_back(drawnUntil / scale, area.top(), (column - drawnUntil) / scale - 1, area.height());
        }
    };

    std::size_t i = lane.firstEndingAfter(axis.start);
    while (i < blocks.size() && static_cast<double>(blocks[i].start) < axis.end()) {
        ++geometry.visited;
        const auto [first, last] =
            columns(axis, static_cast<double>(blocks[i].start), static_cast<double>(blocks[i].end), scale);
        if (last - first >= individual) {
            idleUntil(first);
            BlockRect item{rectOfColumns(first, last, area, scale), i, BlockText::None};
            item.text = textFor(item.rect.width(), item.rect.height(), lane.chunks() > 1);
            geometry.blocks.push_back(item);
            drawnUntil = std::max(drawnUntil, last);
            ++i;
            continue;
        }
        // Everything that starts within this column, in one step. A wide block can only be the last of
        // them, since the others end before it starts; it is left for the next round.
        const int column = std::max(first, drawnUntil);
        const double columnEnd = axis.timeAt((column + columnWidth) / scale);
        std::size_t next = std::max(i + 1, lane.firstStartingFrom(columnEnd, i + 1));
        if (next - 1 > i) {
            ++geometry.visited;
            const auto [f, l] = columns(axis, static_cast<double>(blocks[next - 1].start),
                                        static_cast<double>(blocks[next - 1].end), scale);
            if (l - f >= individual)
                --next;
        }
        idleUntil(first);
        stack(geometry, lane.timePerOp(i, next), columnWidth / scale * axis.nsPerPixel, column / scale,
              columnWidth / scale, area, scale);
        drawnUntil = column + columnWidth;
        i = next;
    }
    const int end = std::min(windowEnd, columns(axis, static_cast<double>(total), static_cast<double>(total), scale).first);
    idleUntil(end);
    return geometry;
}

} // namespace pipewright
