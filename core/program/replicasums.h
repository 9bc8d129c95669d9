// SPDX-License-Identifier: GPL-3.0-or-later
// When the gradients of each stage are summed over the replicas: as soon as the stage's last weight gradient is done in
// both replicas of a pair, in the first time in which neither of their devices computes for as long as the sum takes.
// So sums of the later stages run while the earlier ones are still at their last backwards, and delay none of them.
// Where replicas share the optimizer's state out, there has to be time for the update of a share behind the last sum.
// What finds no such time, or exchanges nothing, comes behind the blocks. O(sums x (blocks after the stage's last + log
// blocks)).
#pragma once

#include "core/design/costs.h"
#include "core/design/dataflow.h"
#include "core/program/program.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/replicas.h"

#include <vector>

namespace pipewright {

/// What two replicas send each other for the sum of a stage's gradients: all, or where replicas share the optimizer's
/// state out what the other one goes on with (keptBehind()).
struct ExchangedGradients {
    Bytes toRoot = 0, toOther = 0;
};
ExchangedGradients exchangedGradients(const PipelineShape& shape, Bytes gradients, const ReplicaPair& pair);

/// Of a stage's gradients, in bytes, those of which a replica has the sum behind the pair's.
ReplicaShare summedGradients(const PipelineShape& shape, Bytes gradients, const ReplicaPair& pair, int replica);
/// Those that a replica updates with.
ReplicaShare updatingGradients(const PipelineShape& shape, Bytes gradients, int replica);

/// How long two devices take to exchange a stage's gradients, each way over its link, or one after the other over one
/// bus.
Nanoseconds replicaSumTime(const PipelineShape& shape, int stage, const ReplicaPair& pair, const Costs& costs);

/// What a transfer carries. Of a stage's gradients, which where replicas share the optimizer's state out are sent on
/// when they are summed, the share of the replica to which they go.
Bytes movedBytes(const Program& program, TaskId transfer);

/// What a replica keeps of `whole`, a stage's optimizer state, or of its parameters where these are shared out: whole
/// parameters, of which a stage has as many as fp32 gradients; single bytes where the bytes are of no model.
Bytes shareOfBytes(Bytes whole, const StageCosts& stage, int replica, int replicas);

/// An update of a stage, or of a share of it.
Nanoseconds updateTime(const PipelineShape& shape, const Costs& costs, int stage);

/// Whether shares are updated as soon as their gradients are summed, so that they travel beside the blocks of earlier
/// stages: where transfers hold no device up.
bool updatesAmidTheBlocks(const PipelineShape& shape, const Costs& costs);

/// Of a reduction: the replica of its root.
int rootReplica(const Program& program, const Task& task);
/// Of a sum over replicas.
ReplicaPair pairOf(const Program& program, const Task& task);

/// The task behind the last block's. Sums over replicas may stand before it.
TaskId endOfBlocks(const Program& program);

struct PlannedReplicaSum {
    int stage = 0;
    ReplicaPair pair;
    Nanoseconds at = 0;
};

/// In the order in which they are issued; nothing with one replica. `run`: the blocks' times. Stages whose gradients
/// are first summed with another stage's, at the end of the step (`commuted`), come last.
std::vector<PlannedReplicaSum> planReplicaSums(const PipelineShape& shape, const Costs& costs, const Dataflow& dataflow,
                                               const OrderGraph& graph, const OrderRun& run, bool commuted);

} // namespace pipewright
