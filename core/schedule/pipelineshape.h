// SPDX-License-Identifier: GPL-3.0-or-later
// What a pipeline looks like whatever the order of its blocks: how many stages, microbatches and replicas there
// are, which device holds which stage, and how weights are updated. A Schedule and the Program compiled from it
// have the same shape.
#pragma once

#include "core/base/recompute.h"
#include "core/schedule/block.h"
#include "core/schedule/weightpolicy.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipewright {

struct PipelineShape {
    int microbatches = 0;           ///< per step, over all replicas; with sequence pieces every piece counts as one
    std::vector<int> deviceOfStage; ///< placement: stage -> device; its size is the number of stages
    /// Bidirectional pipelines and copies: the placement of replica 1, 2, …; deviceOfStage is that of replica 0. Each
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
    /// Where devices take turns on a stage (dataParallelDevices) under a cyclic rule: only the one that updates it
    /// keeps its weights, gradients and optimizer state. What a block reads and the gradient sum hop from one block of
    /// the stage to the next, in the order of the cyclic timetable (weightrules.h).
    bool shardedStates = false;
    /// Replicas share the optimizer's state of every stage out (ZeRO stage 1, arXiv 1910.02054): each keeps the state
    /// of its share of the parameters, updates that and sends it to the others (replicas.h).
    bool shardedOptimizer = false;
    /// Which weights blocks read where the order has U blocks. U2.5 applies the gradients of stage 2's backwards
    /// since its U before, the last of which is microbatch 5's. A schedule without U blocks updates once, at its end.
    WeightPolicy weightPolicy;

    /// Per stage, what an R block makes again between F and the backward of every microbatch. Empty: none does.
    std::vector<Recompute> recompute;

    /// Per stage: what its forwards keep leaves for the host's memory and is back before the backward, as far as there
    /// is time for both (program/offloadplan.h). Empty: none does.
    std::vector<bool> offload;

    int stages() const { return static_cast<int>(deviceOfStage.size()); }
    bool offloads(int stage) const
    {
        const auto s = static_cast<std::size_t>(stage);
        return s < offload.size() && offload[s];
    }
    Recompute recomputeOf(int stage) const
    {
        const auto s = static_cast<std::size_t>(stage);
        return s < recompute.size() ? recompute[s] : Recompute::None;
    }
    /// Most stages of one replica that any device holds (v in the papers). O(stages).
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

    const PipelineShape& shape() const { return *this; }
    PipelineShape& shape() { return *this; } ///< to copy it from one to another
    bool operator==(const PipelineShape&) const = default;
};

} // namespace pipewright
