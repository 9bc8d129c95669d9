// SPDX-License-Identifier: GPL-3.0-or-later
// How the parts of two blocks share the two streams of one device. The device issues the parts of both blocks in one
// order that keeps each block's own order, and each stream runs its parts first come, first served. A part begins when
// its stream is free and the last awaited part before it in its own block has ended. Every merge of the two lists is
// such an order, and none can deadlock.
//
// The shortest one is that of a job shop of two jobs on two machines, which is solved exactly in polynomial time
// (Akers, "A graphical approach to production scheduling problems", Operations Research 4, 1956: a shortest path in the
// plane of the two jobs' progress). Here the path goes over the states "i parts of one and j of the other are issued",
// and each state keeps the Pareto-optimal combinations of the times at which streams and blocks are free, because a
// part that is not awaited lets a block run on both streams at once. O(parts of one · parts of the other · kept
// combinations²).
#pragma once

#include "core/design/blockparts.h"
#include "core/schedule/schedule.h"

#include <array>
#include <span>
#include <vector>

namespace pipewright {

/// When each part begins, of the first block and of the second, from the pair's start on.
using PartStarts = std::array<std::vector<Nanoseconds>, 2>;

/// How long the two take when their parts are issued in this order: as many entries as they have parts. O(parts).
Nanoseconds lengthOf(std::span<const BlockPart> first, std::span<const BlockPart> second, const PartSequence& order,
                     PartStarts* starts = nullptr);

struct ShortestParts {
    PartSequence order;
    Nanoseconds length = 0;
    /// False when combinations were dropped to limit the effort: a shorter order may exist, but none shorter than
    /// `least`.
    bool proven = true;
    Nanoseconds least = 0;
};
/// The most combinations that are kept; with less than one per state a greedy order is used.
constexpr std::size_t usualEffort = 1 << 20;
ShortestParts shortestOrder(std::span<const BlockPart> first, std::span<const BlockPart> second,
                            std::size_t effort = usualEffort);

/// The same order with one part of the first (`block` 0) or second block (1) moved behind `behind` parts of the other
/// block. Parts of its own block move with it when their order requires it. O(parts).
PartSequence withPartMoved(const PartSequence& order, std::size_t block, std::size_t part, std::size_t behind);

} // namespace pipewright
