// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lanegeometry.h"

namespace pipewright {
namespace {

constexpr double individualMean = 3;  // pixels: mean width from which every block is drawn by itself
constexpr double individualWidth = 8; // pixels from which a block is drawn by itself among merged ones
constexpr double columnWidth = 6;     // pixels of a column of merged blocks; a few blocks, so that the mix is steady
constexpr double gapFromWidth = 4;    // blocks at least this wide leave a pixel to the next one
constexpr double twoLines = 28;       // pixels of height from which a number stands below its letter
constexpr double letterWidth = 11, digitWidth = 7, stageWidth = 23, nameWidth = 36;
constexpr double idleWidth = 3; // narrower idle time looks like a gap between blocks

/// What the labels of a lane need, in pixels.
struct LabelWidths {
    double number = letterWidth; ///< the widest microbatch below its letter
    double of(BlockText form) const
    {
        switch (form) {
        case BlockText::None: return 0;
        case BlockText::Letter: return letterWidth;
        case BlockText::Name: return nameWidth;
        case BlockText::LetterAndNumber: return number;
        case BlockText::LetterStageAndNumber: break;
        }
        return std::max(stageWidth, number);
    }
};

/// The widest number is taken from the last blocks of a device: they have its highest microbatch, or one with as many
/// digits.
LabelWidths labelWidths(const Lane& lane)
{
    constexpr std::size_t looked = 8;
    const std::vector<LaneBlock>& blocks = lane.blocks();
    int highest = 0;
    for (std::size_t i = blocks.size() - std::min(looked, blocks.size()); i < blocks.size(); ++i)
        highest = std::max(highest, blocks[i].block.microbatch);
    int digits = 1;
    for (; highest >= 10; highest /= 10)
        ++digits;
    return {std::max(letterWidth, 4 + digits * digitWidth)};
}

/// The form of a lane's labels, by the mean width of its blocks.
BlockText formFor(const LabelWidths& widths, double width, double height, bool severalChunks)
{
    if (width < letterWidth || height < 14)
        return BlockText::None;
    if (height < twoLines)
        return width >= nameWidth ? BlockText::Name : BlockText::Letter;
    if (severalChunks && width >= widths.of(BlockText::LetterStageAndNumber))
        return BlockText::LetterStageAndNumber;
    return width >= widths.number ? BlockText::LetterAndNumber : BlockText::Letter;
}

/// Depends on a block's duration and not on its rounded pixels, so that blocks of equal duration are labelled alike.
BlockText textFor(const LabelWidths& widths, BlockText form, double width)
{
    if (width >= widths.of(form))
        return form;
    return width >= letterWidth && form != BlockText::None ? BlockText::Letter : BlockText::None;
}

/// Mean block width of the whole lane, in pixels; O(log blocks).
double meanWidth(const Lane& lane, const TimeAxis& axis)
{
    if (lane.blocks().empty())
        return 0;
    double busy = 0;
    for (const double time : lane.timePerOpUntil(1e300))
        busy += time;
    return busy / static_cast<double>(lane.blocks().size()) / axis.nsPerPixel;
}

QRectF rectOfColumns(int first, int last, const QRectF& area, double scale)
{
    const double width = (last - first) / scale;
    // The gap is one device-independent pixel, so it stays visible on dense screens.
    return {first / scale, area.top(), width >= gapFromWidth ? width - 1 : width, area.height()};
}

// The time per operation until an x; a column begins where the one before ended, so each is looked up once.
struct Spent {
    double x = -1;
    std::array<double, opCount> time{};
};

// One column of merged blocks, filled from below in the order of the operations. `index`: of a block that
// begins in it.
void stack(LaneGeometry& geometry, const Lane& lane, const TimeAxis& axis, double first, double last, std::size_t index,
           const QRectF& area, double scale, Spent& spent)
{
    const std::array<double, opCount> before =
        spent.x == first ? spent.time : lane.timePerOpUntil(axis.timeAt(first), index > 0 ? index - 1 : 0);
    const std::array<double, opCount> after = lane.timePerOpUntil(axis.timeAt(last), index);
    spent = {last, after};
    const double heightPerTime = area.height() / ((last - first) * axis.nsPerPixel);
    double busy = 0;
    double bottom = area.bottom();
    for (std::size_t op = 0; op < before.size(); ++op) {
        if (after[op] <= before[op])
            continue;
        busy += after[op] - before[op];
        // Rounding the running sum instead of each share keeps the total height exact.
        const double top = std::max(area.top(), area.bottom() - std::round(busy * heightPerTime * scale) / scale);
        if (top < bottom)
            geometry.merged[op].emplace_back(first, top, last - first, bottom - top);
        bottom = top;
    }
}

// A window is merged everywhere or nowhere: a mixture of both shows patterns that are not in the schedule.
bool isDense(const Lane& lane, const TimeAxis& axis)
{
    const std::size_t first = lane.firstEndingAfter(axis.start);
    const std::size_t last = lane.firstStartingFrom(axis.end(), first);
    return static_cast<double>(last - first) * individualMean > axis.width;
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
    const bool dense = isDense(lane, axis);
    const int individual = dense ? static_cast<int>(individualWidth * scale) : 0;
    const int column = std::max(1, static_cast<int>(columnWidth * scale));
    const int origin = columns(axis, 0, 0, scale).first;
    const int windowEnd = static_cast<int>(axis.right() * scale);

    // Idle time is measured between what was drawn; the first stretch begins at time zero.
    int drawnUntil = std::max(static_cast<int>(axis.left * scale), origin);
    const auto idleUntil = [&](int until) {
        // The shape before already left a pixel free; one more keeps idle time off the next block.
        if ((until - drawnUntil) / scale >= idleWidth)
            geometry.idle.emplace_back(drawnUntil / scale, area.top(), (until - drawnUntil) / scale - 1, area.height());
    };

    const LabelWidths widths = labelWidths(lane);
    // The label form is chosen for blocks longer than the mean, which have room earlier, so that similar lanes are all
    // labelled.
    constexpr double longer = 1.5;
    const BlockText form = formFor(widths, longer * meanWidth(lane, axis), area.height(), lane.chunks() > 1);
    Spent spent;
    std::size_t i = lane.firstEndingAfter(axis.start);
    while (i < blocks.size() && static_cast<double>(blocks[i].start) < axis.end()) {
        ++geometry.visited;
        const auto [first, last] =
            columns(axis, static_cast<double>(blocks[i].start), static_cast<double>(blocks[i].end), scale);
        idleUntil(first);
        if (last - first >= individual) {
            BlockRect item{rectOfColumns(first, last, area, scale), i, BlockText::None};
            item.text = textFor(widths, form, static_cast<double>(blocks[i].end - blocks[i].start) / axis.nsPerPixel);
            geometry.blocks.push_back(item);
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
        stack(geometry, lane, axis, from / scale, until / scale, i, area, scale, spent);
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
