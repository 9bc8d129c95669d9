// SPDX-License-Identifier: GPL-3.0-or-later
// Copies of whole pipelines that train side by side, each on devices of its own and with its share of the microbatches.
// A step ends with every stage's gradients summed over all replicas: in rounds of pairs, in each of which both have the
// sum of the two (recursive doubling). With P the largest power of two among them, replica P + i is first added to
// replica i, so that P are left; after log2(P) rounds these have the same sum, to the bit, since an addition does not
// depend on which of the two comes first; and replica P + i is sent it by replica i.
#pragma once

#include "core/base/diagnostic.h"
#include "core/schedule/schedule.h"

#include <vector>

namespace pipewright {

/// So many copies of a schedule that has neither update blocks nor stated orders: copy c on the c-th run of devices,
/// with the c-th run of microbatches. O(blocks).
Schedule withReplicas(const Schedule& one, int copies);

/// Pipelines that share no device. The replicas of a bidirectional pipeline do, and count as one.
/// O(replicas x stages).
int pipelinesOf(const PipelineShape& shape);

/// Two replicas whose sums are added, and the round in which they are.
struct ReplicaPair {
    int root = 0, other = 0; ///< root < other
    int round = 0;
    bool operator==(const ReplicaPair&) const = default;
};
/// All of a stage, round after round.
std::vector<ReplicaPair> replicaPairs(int replicas);

/// Behind the rounds: who sends the sum to whom. Nobody where the replicas are a power of two.
struct ReplicaCopy {
    int from = 0, to = 0;
};
std::vector<ReplicaCopy> replicaCopies(int replicas);

/// Some of `count` values in a row: from `begin` on and before `end`.
struct ReplicaShare {
    std::int64_t begin = 0, end = 0;
    std::int64_t count() const { return end - begin; }
    bool operator==(const ReplicaShare&) const = default;
};

/// Where the replicas share the optimizer's state out: of `count` values those that are this replica's. Shares do not
/// lie in the replicas' order, but so that what keptBehind() says is in one run. O(replicas).
ReplicaShare shareOfReplica(std::int64_t count, int replica, int replicas);
/// Of `count` parameters of a stage those that a replica updates: its share, or all where none are shared out.
ReplicaShare updatedBy(const PipelineShape& shape, std::int64_t count, int replica);

/// There, gradients need be summed only where they are used (reduce-scatter by recursive halving): of `count` values
/// those that a replica of the pair goes on with behind its sum, which are its own share and the shares of replicas
/// that have theirs from it later. The two divide what both had between them, and send each other the rest; before the
/// rounds the root keeps all. So every value is summed in the same order as where all replicas have all sums.
/// O(replicas).
ReplicaShare keptBehind(std::int64_t count, const ReplicaPair& pair, int replica, int replicas);

/// The root of the pair whose other replica this is and whose root's stage is on `device`. Unique where
/// checkReplicas() finds nothing.
int rootOfPair(const PipelineShape& shape, int stage, int device, int other);

/// What keeps gradients from being summed over the replicas. Placements are of the right size.
Diagnostics checkReplicas(const PipelineShape& shape);

} // namespace pipewright
