// SPDX-License-Identifier: GPL-3.0-or-later
// Plans when the gradients of each stage are summed over the replicas: after the stage's last weight gradient in both
// replicas of a pair, in the first gap of both devices that is as long as the sum. So sums of the later stages run
// during the last backwards of the earlier stages and delay none of them. When replicas shard the optimizer state, the
// gap must also hold the update of a share after the last sum. Sums without such a gap, or that exchange nothing, come
// after the blocks. O(sums x (blocks after the stage's last + log blocks)).
#pragma once

#include "core/design/costs.h"
#include "core/design/dataflow.h"
#include "core/design/stagestate.h"
#include "core/program/program.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/replicas.h"

#include <vector>

namespace pipewright {

/// The bytes that two replicas send each other for the sum of a stage's gradients: all of them, or with a sharded
/// optimizer state the part that the other replica continues with (keptBehind()).
struct ExchangedGradients {
    Bytes toRoot = 0, toOther = 0;
};
ExchangedGradients exchangedGradients(const PipelineShape& shape, Bytes gradients, const ReplicaPair& pair);

/// The range of a stage's gradients, in bytes, of which a replica has the sum after this pair's exchange.
ReplicaShare summedGradients(const PipelineShape& shape, Bytes gradients, const ReplicaPair& pair, int replica);
/// The range that a replica uses for its update.
ReplicaShare updatingGradients(const PipelineShape& shape, Bytes gradients, int replica);

/// How long two devices take to exchange a stage's gradients, each way over its link, or one after the other over one
/// bus.
Nanoseconds replicaSumTime(const PipelineShape& shape, int stage, const ReplicaPair& pair, const Costs& costs);

/// The bytes of a transfer. For complete gradient sums that are sent on with a sharded optimizer state, only the share
/// of the receiving replica.
Bytes movedBytes(const Program& program, TaskId transfer);

/// The buffer with a stage's Parameters, Gradients or OptimizerState in a replica. O(devices).
BufferId persistentBuffer(const Program& program, BufferKind kind, int stage, int replica);
/// Where a replica's share lies in all of a stage's gathered parameters, in bytes. O(replicas x devices).
ReplicaShare gatheredPart(const Program& program, int stage, int replica);

/// The bytes that a replica keeps of `whole`, a stage's optimizer state or its sharded parameters. Shares consist of
/// whole parameters, as many as the stage has fp32 gradients; when the bytes come from no model, of single bytes.
Bytes shareOfBytes(Bytes whole, const StageCosts& stage, int replica, int replicas);

/// What a replica keeps of a stage's `whole` state from step to step: all, or its shares of what is shared out.
/// Gradients that are shared out are not there between steps.
StageState keptBy(const PipelineShape& shape, const StageCosts& stage, const StageState& whole, int replica);

/// An update of a stage, or of a share of it. With update blocks (`amid` the step) and with drawn replicas the
/// exchanges with copies that are only counted are part of it; elsewhere they have tasks of their own
/// (copycollectives.h).
Nanoseconds updateTime(const PipelineShape& shape, bool amid, const Costs& costs, int stage);

/// True when shares are updated as soon as their gradients are summed, so that their transfers overlap with the blocks
/// of earlier stages: when transfers are not blocking.
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
