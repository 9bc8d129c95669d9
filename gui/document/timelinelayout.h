// SPDX-License-Identifier: GPL-3.0-or-later
// The blocks of a Timeline sorted for drawing and pointing: one array per device, in time order, with
// running sums of the time each operation has taken. A window, a block under the cursor or the mix of
// operations inside one pixel is then a binary search and a subtraction, whatever the number of blocks.
// Building is O(blocks); a layout knows nothing of pixels.
#pragma once

#include "core/design/design.h"
#include "core/predict/predict.h"

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace pipewright {

struct LaneBlock {
    Nanoseconds start = 0, end = 0;
    TaskId task = none; ///< none in a layout made by fromOrder()
    Block block;
    std::uint8_t chunk = 0; ///< which of the device's stages, counted from 0
    /// How much of its time, from its start, makes again what the forward did not keep: in 255ths. Of predicted
    /// backwards; an R block is one by itself.
    std::uint8_t recomputes = 0;
    /// Of an overlapped pair: start and end are then those of its half of the slot.
    enum class Pair : std::uint8_t { None, First, Second } pair = Pair::None;

    /// The time in which it really runs: both blocks of a pair run in the whole slot.
    Nanoseconds runsFrom() const { return pair == Pair::Second ? start - (end - start) : start; }
    Nanoseconds runsUntil() const { return pair == Pair::First ? end + (end - start) : end; }
};

/// A sum of gradients in which the device takes part. It is no block of the schedule, so it is only shown.
struct LaneSum {
    Nanoseconds start = 0, end = 0;
    TaskId task = none;
};

/// The blocks of one device; they do not overlap, since a device computes one at a time.
class Lane {
public:
    const std::vector<LaneBlock>& blocks() const { return m_blocks; }
    /// Index of the first block that ends after `time`; blocks().size() when none does. O(log blocks).
    std::size_t firstEndingAfter(double time) const;
    /// Index of the first block at or after `from` that starts at or after `time`. O(log distance).
    std::size_t firstStartingFrom(double time, std::size_t from) const;
    /// The block that covers `time`. O(log blocks).
    std::optional<std::size_t> at(double time) const;
    /// Time that each operation has taken until `time`, a block under way counted as far as it has come.
    /// The mix of operations inside a pixel is a difference of two of these. `from`: an index whose block begins
    /// before `time`, or 0; O(log blocks between it and `time`).
    std::array<double, opCount> timePerOpUntil(double time, std::size_t from = 0) const;
    int chunks() const { return m_chunks; }
    /// By time; sums that take no time are left out.
    const std::vector<LaneSum>& gradientSums() const { return m_gradientSums; }

private:
    friend class TimelineLayout;
    void finish(); ///< sorts and sums
    void sum(std::size_t from);
    std::vector<LaneBlock> m_blocks;
    std::vector<LaneSum> m_gradientSums;
    std::vector<std::array<Nanoseconds, opCount>> m_sums; ///< m_sums[i]: of the blocks before i
    int m_chunks = 1;
    bool m_isByTask = false; ///< tasks are numbered in the order of the blocks
};

class TimelineLayout {
public:
    TimelineLayout() = default;
    /// Compute and update tasks with a time, and sums of gradients; tasks that were not run are left out.
    TimelineLayout(const Program& program, const Timeline& timeline, int devices);
    /// For designs without a prediction: the blocks of each device back to back in their order.
    static TimelineLayout fromOrder(const Design& design);
    /// Sets LaneBlock::recomputes from the design's costs, by which the blocks were timed.
    void markRecomputed(const Design& design);

    struct Place {
        int device = -1;
        std::size_t index = 0;
    };
    const std::vector<Lane>& lanes() const { return m_lanes; }
    Nanoseconds makespan() const { return m_makespan; }
    std::optional<Place> find(const Block& block) const; ///< O(1)
    const LaneBlock* blockOf(const Block& block) const;  ///< null when absent
    std::size_t blocks() const { return m_blocks; }

    /// Makes this, a copy of `base`, the layout of the same tasks at other times, with the blocks of `device` in
    /// another order: `positions[i]` is the place in `base` of the block that comes i-th. Tasks before `changed`
    /// have the times of `base`. O(blocks behind it, now or at the last call), about a millisecond for 200,000;
    /// false, with nothing changed, when `base` shows other tasks.
    bool retime(const TimelineLayout& base, const Prediction& prediction, int device,
                std::span<const std::uint32_t> positions, TaskId changed = 0);

    struct Hash {
        std::size_t operator()(const Block& block) const;
    };

private:
    void finish();
    void addGradientSum(const Task& task, const LaneSum& sum);
    std::vector<Lane> m_lanes;
    // Open addressing: the number + 1 of a block, counted through the lanes; 0 where free.
    std::vector<std::uint32_t> m_table;
    std::vector<std::uint32_t> m_firstOfLane;
    std::size_t m_blocks = 0;
    int m_reordered = -1;             ///< the lane whose blocks are not in the order of their numbers …
    std::vector<std::uint32_t> m_now; ///< … and their places, by number within the lane
    TaskId m_changed = none;          ///< tasks before it have the times that this was copied with
    Nanoseconds m_makespan = 0;
};

} // namespace pipewright
