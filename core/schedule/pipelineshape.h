// SPDX-License-Identifier: GPL-3.0-or-later
// The properties of a pipeline that do not depend on the order of its blocks: the numbers of stages, microbatches and
// replicas, the placement of stages on devices, and how weights are updated. A Schedule and the Program compiled from
// it have the same shape.
#pragma once

#include "core/base/recompute.h"
#include "core/schedule/block.h"
#include "core/schedule/weightpolicy.h"
#include "core/schedule/zero.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipewright {

/// What of a schedule the bytes and times of its stages depend on.
struct MemoryChoices {
    std::vector<Recompute> recompute; ///< per stage; empty: none
    Zero zero;
};

struct PipelineShape {
    int microbatches = 0;           ///< per step, over all replicas; with sequence pieces every piece counts as one
    std::vector<int> deviceOfStage; ///< placement: stage -> device; its size is the number of stages
    /// Bidirectional pipelines and copies: the placement of replica 1, 2, …; deviceOfStage is that of replica 0. Each
    /// microbatch belongs to one replica, see replicaOf().
    std::vector<std::vector<int>> replicaPlacements;
    /// For stages whose microbatches are distributed over several devices (the workers of data parallel training):
    /// stage -> devices; microbatch m runs on device m modulo their number. deviceOfStage is then the device that
    /// updates the stage. Empty: deviceOfStage alone. Such a schedule has U blocks and one replica.
    std::vector<std::vector<int>> dataParallelDevices;
    /// Seq1F1B: this many consecutive microbatch numbers are the pieces of one sequence. Within a stage the
    /// forwards of a sequence run in ascending order, since attention looks back, and its backwards in descending
    /// order. Divides `microbatches`.
    int sequencePieces = 1;
    /// With dataParallelDevices and a cyclic rule: only the device that updates a stage keeps its weights, gradients
    /// and optimizer state. The weights and the gradient sum are passed from one block of the stage to the next, in the
    /// order of the cyclic timetable (weightrules.h).
    bool shardedStates = false;
    /// What the copies of the pipeline share out: replicas, and those that only the model's degrees of parallelism
    /// count.
    Zero zero;
    /// Which weights the blocks read when the order has U blocks. U2.5 applies the gradients of stage 2's backwards
    /// since its previous U; the last of them is microbatch 5's. A schedule without U blocks updates once, at its end.
    WeightPolicy weightPolicy;

    /// Per stage, what an R block recomputes between F and the backward of every microbatch. Empty: no stage
    /// recomputes.
    std::vector<Recompute> recompute;

    /// Per stage: its saved activations are copied to host memory and back before the backward, as far as there is time
    /// for both copies (program/offloadplan.h). Empty: no stage offloads.
    std::vector<bool> offload;

    int stages() const { return static_cast<int>(deviceOfStage.size()); }
    /// Whether the replicas shard the optimizer state of every stage: each keeps the state of its share of the
    /// parameters, updates that share and sends it to the others (replicas.h).
    bool sharesOptimizer() const { return zero.level > 0 && replicas() > 1; }
    /// Whether they share out gradients, too: each keeps the sum of its share alone.
    bool sharesGradientsOfReplicas() const { return zero.sharesGradients() && replicas() > 1; }
    /// Whether they share out parameters, too: each gathers those of the others before its blocks read them.
    bool sharesParametersOfReplicas() const { return zero.sharesParameters() && replicas() > 1; }
    MemoryChoices memoryChoices() const { return {recompute, zero}; }
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
    /// The microbatches are divided among the replicas in equal consecutive runs: of 8 microbatches, replica 1 of 2 has
    /// 4 to 7. Precondition: a microbatch of this schedule.
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
    PipelineShape& shape() { return *this; } ///< for assignment of the whole shape
    bool operator==(const PipelineShape&) const = default;
};

} // namespace pipewright
