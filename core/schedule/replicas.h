// SPDX-License-Identifier: GPL-3.0-or-later
// Replicas of a whole pipeline, each on its own devices and with its share of the microbatches. At the end of a step
// every stage's gradients are summed over all replicas in rounds of pairs; after a round both replicas of a pair have
// their sum (recursive doubling). Let P be the largest power of two not above the number of replicas. First replica P +
// i is added to replica i, so that P replicas are left. After log2(P) rounds they have bitwise equal sums, since
// addition is commutative. Then replica i sends the sum to replica P + i.
#pragma once

#include "core/base/diagnostic.h"
#include "core/schedule/schedule.h"

#include <vector>

namespace pipewright {

/// `copies` copies of a schedule without update blocks and stated orders: copy c uses the c-th run of devices and the
/// c-th run of microbatches. O(blocks).
Schedule withReplicas(const Schedule& one, int copies);

/// The number of pipelines that share no device. The replicas of a bidirectional pipeline share devices and count as
/// one.
/// O(replicas x stages).
int pipelinesOf(const PipelineShape& shape);

/// Two replicas whose gradient sums are added, and the round.
struct ReplicaPair {
    int root = 0, other = 0; ///< root < other
    int round = 0;
    bool operator==(const ReplicaPair&) const = default;
};
/// All pairs of a stage, round by round.
std::vector<ReplicaPair> replicaPairs(int replicas);

/// After the rounds: which replica sends the sum to which. Empty when the number of replicas is a power of two.
struct ReplicaCopy {
    int from = 0, to = 0;
};
std::vector<ReplicaCopy> replicaCopies(int replicas);

/// A range [begin, end) of values.
struct ReplicaShare {
    std::int64_t begin = 0, end = 0;
    std::int64_t count() const { return end - begin; }
    bool operator==(const ReplicaShare&) const = default;
};

/// With a sharded optimizer state: this replica's share of `count` values. Shares are not in the order of the replicas;
/// they are placed so that every result of keptBehind() is one contiguous range. O(replicas).
ReplicaShare shareOfReplica(std::int64_t count, int replica, int replicas);
/// The range of `count` parameters of a stage that a replica updates: its share, or all without sharding.
ReplicaShare updatedBy(const PipelineShape& shape, std::int64_t count, int replica);

/// With a sharded optimizer state, a replica needs only the gradients of its share (reduce-scatter by recursive
/// halving). Returns the range of `count` values that a replica keeps after the pair's sum: its own share, and the
/// shares that other replicas later get from it. The two replicas divide their common range and send each other the
/// rest; before the rounds the root keeps all. Every value is summed in the same order as without sharding.
/// O(replicas).
ReplicaShare keptBehind(std::int64_t count, const ReplicaPair& pair, int replica, int replicas);

/// The root of the pair whose other replica this is and whose root's stage is on `device`. Unique where
/// checkReplicas() finds nothing.
int rootOfPair(const PipelineShape& shape, int stage, int device, int other);

/// Errors that prevent summing gradients over the replicas. Precondition: placements have the right size.
Diagnostics checkReplicas(const PipelineShape& shape);

} // namespace pipewright
