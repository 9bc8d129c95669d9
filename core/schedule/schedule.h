// SPDX-License-Identifier: GPL-3.0-or-later
// The schedule that the user edits: which device holds which stage and, per device, an ordered list of blocks.
// Order is the schedule; times are always derived from it. A Schedule is a plain value: copy it,
// change it, compare it. Nothing in it is checked until validate() looks (validate.h).
#pragma once

#include "core/base/limits.h"
#include "core/base/units.h"
#include "core/schedule/pipelineshape.h"
#include "core/schedule/transfer.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright {

/// A block must not start before this time. Pins are the only times that a user can state.
struct Pin {
    Block block;
    Nanoseconds earliestStart = 0;
    bool operator==(const Pin&) const = default;
};

/// Two blocks, one behind the other in their device's order, that run at the same time (DualPipe's F&B):
/// they start together when both have their inputs, and end together (core/program/pairtimes.h).
struct Overlap {
    Block first, second;
    auto operator<=>(const Overlap&) const = default;
};

/// The order in which a pair issues its parts (StageCosts::parts): per part, whether it is the next one of the second
/// block.
using PartSequence = std::vector<bool>;

/// A stated order of a pair's parts, in place of the shortest one.
struct PartOrder {
    Overlap pair;
    PartSequence sequence;
    bool operator==(const PartOrder&) const = default;
};

/// What is said of one gather of parameters that copies share out (statedgather.h).
struct StatedGather {
    Block reader; ///< the first block that reads what is gathered
    /// Gathered before this block of the device runs. Nothing: not gathered, the device keeps it from the visit before.
    std::optional<Block> before{};
    bool operator==(const StatedGather&) const = default;
};

struct Schedule : PipelineShape {
    // Out of line: inlined, each is kilobytes of code in every file that uses one.
    Schedule();
    Schedule(const Schedule& other);
    Schedule(Schedule&& other) noexcept;
    Schedule& operator=(const Schedule& other);
    Schedule& operator=(Schedule&& other) noexcept;
    ~Schedule();

    std::string family; ///< the family it was made by; "custom" after an edit
    BackwardStyle backward = BackwardStyle::Full;
    /// JaxPP merges I and W of stage 0 and rejects a list that separates them, since nothing waits for
    /// the input gradient of the first stage. Families that place them apart on purpose say so here.
    bool firstStageMaySplit = false;
    std::vector<std::vector<Block>> order; ///< device -> blocks in the order they run
    std::vector<Overlap> overlaps;         ///< sorted
    std::vector<Pin> pins;
    std::vector<PartOrder> partOrders{};             ///< sorted by pair
    std::vector<TransferPrecedence> transferOrder{}; ///< stated orders that override the inferred one
    std::vector<StatedGather> gathers{};             ///< sorted by reader, each once; in place of the rule

    int devices() const { return static_cast<int>(order.size()); }
    std::int64_t blocks() const;
    bool operator==(const Schedule& other) const;
};

/// The blocks that a complete schedule has and this one does not place: what the tray shows.
/// Sorted by operation in pass order, then microbatch, then stage. O(blocks).
std::vector<Block> unplacedBlocks(const Schedule& schedule);

/// Removes the overlaps whose two blocks are not adjacent, and the orders of their parts. O(blocks); O(1) without
/// overlaps.
void dropBrokenOverlaps(Schedule& schedule);

/// The stated order of the pair's parts; null where none is. O(log pairs).
const PartSequence* statedPartOrder(const Schedule& schedule, const Overlap& pair);

/// Sets the stated order of the pair's parts; an empty `sequence` removes it, which selects the shortest one.
void statePartOrder(Schedule& schedule, const Overlap& pair, PartSequence sequence);

} // namespace pipewright
