// SPDX-License-Identifier: GPL-3.0-or-later
// What people edit: which device holds which stage and, per device, an ordered list of blocks.
// Order is the schedule; times are always derived from it. A Schedule is a plain value: copy it,
// change it, compare it. Nothing in it is checked until validate() looks (validate.h).
#pragma once

#include "core/base/limits.h"
#include "core/base/units.h"
#include "core/schedule/block.h"
#include "core/schedule/transfer.h"
#include "core/schedule/weightpolicy.h"

#include <algorithm>
#include <string>
#include <vector>

namespace pipewright {

/// Whether a stage's backward is one block (B) or two (I then W). Blocks that are already placed say
/// it for themselves; this is the style that missing blocks of the same stage and microbatch take.
enum class BackwardStyle { Full, Split };

/// A block must not start before this time. Pins are the only times a person may state.
struct Pin {
    Block block;
    Nanoseconds earliestStart = 0;
    bool operator==(const Pin&) const = default;
};

/// Two blocks, one behind the other in their device's order, that run at the same time (DualPipe's F&B):
/// they start together when both have their inputs, and end together (Costs::overlapFactor).
struct Overlap {
    Block first, second;
    auto operator<=>(const Overlap&) const = default;
};

struct Schedule {
    std::string family;             ///< the family it was made by; "custom" after an edit
    int microbatches = 0;           ///< per step, over all replicas; with sequence pieces every piece counts as one
    std::vector<int> deviceOfStage; ///< placement: stage -> device; its size is the number of stages
    /// Bidirectional pipelines: the placement of replica 1, 2, …; deviceOfStage is that of replica 0. Each
    /// microbatch belongs to one replica, see replicaOf().
    std::vector<std::vector<int>> replicaPlacements;
    /// Where the microbatches of a stage are worked on by several devices in turn (the workers of data parallel
    /// training): stage -> devices, microbatch m on the m-th of them, round and round. deviceOfStage then says
    /// which device updates the stage. Empty: deviceOfStage alone. Such a schedule has U blocks and one replica.
    std::vector<std::vector<int>> dataParallelDevices;
    /// Seq1F1B: so many consecutive microbatch numbers are pieces of one sequence. Within a stage the
    /// forwards of a sequence run in ascending order, since attention looks back, and its backwards in
    /// descending order. Divides `microbatches`.
    int sequencePieces = 1;
    BackwardStyle backward = BackwardStyle::Full;
    /// JaxPP merges I and W of stage 0 and rejects a list that separates them, since nothing waits for
    /// the input gradient of the first stage. Families that place them apart on purpose say so here.
    bool firstStageMaySplit = false;
    /// Where devices take turns on a stage (dataParallelDevices) under a cyclic rule: only the one that updates it
    /// keeps its weights, gradients and optimizer state. What a block reads and the gradient sum hop from one block of
    /// the stage to the next, in the order of the cyclic timetable (weightrules.h).
    bool shardedStates = false;
    std::vector<std::vector<Block>> order; ///< device -> blocks in the order they run
    std::vector<Overlap> overlaps;         ///< sorted
    std::vector<Pin> pins;
    std::vector<TransferPrecedence> transferOrder{}; ///< where the order inferred from the data is not wanted
    /// Which weights blocks read where the order has U blocks. U2.5 applies the gradients of stage 2's backwards
    /// since its U before, the last of which is microbatch 5's. A schedule without U blocks updates once, at its end.
    WeightPolicy weights;

    int stages() const { return static_cast<int>(deviceOfStage.size()); }
    int devices() const { return static_cast<int>(order.size()); }
    std::int64_t blocks() const;
    /// Most stages of one replica that any device holds (v in the papers).
    int chunks() const;
    int replicas() const { return 1 + static_cast<int>(replicaPlacements.size()); }
    /// The replicas share the microbatches out in equal consecutive runs: of 8 microbatches replica 1 of 2
    /// has 4 to 7. For a microbatch of this schedule.
    int replicaOf(int microbatch) const
    {
        return replicaPlacements.empty()
                   ? 0
                   : static_cast<int>(std::int64_t{microbatch} * replicas() / std::max(1, microbatches));
    }
    const std::vector<int>& placement(int replica) const
    {
        return replica == 0 ? deviceOfStage : replicaPlacements[replica - 1];
    }
    /// The device that holds a block's stage; the block is one of this schedule's.
    int deviceOf(const Block& block) const
    {
        const auto stage = static_cast<std::size_t>(block.stage);
        if (dataParallelDevices.empty() || !isPass(block.op))
            return placement(block.replica)[stage];
        return dataParallelDevices[stage]
                                  [static_cast<std::size_t>(block.microbatch) % dataParallelDevices[stage].size()];
    }
    /// The block of these three, with the replica that the microbatch belongs to.
    Block block(Op op, int stage, int microbatch) const { return {op, stage, microbatch, replicaOf(microbatch)}; }
    bool operator==(const Schedule&) const = default;
};

/// The blocks that a complete schedule has and this one does not place: what the tray shows.
/// Sorted by operation in pass order, then microbatch, then stage. O(blocks).
std::vector<Block> unplacedBlocks(const Schedule& schedule);

/// Forgets the overlaps whose two blocks do not stand one behind the other. O(blocks), at once without overlaps.
void dropBrokenOverlaps(Schedule& schedule);

} // namespace pipewright
