// SPDX-License-Identifier: GPL-3.0-or-later
// Copies of whole pipelines that train side by side, each on devices of its own and with its share of the microbatches.
// A step ends with every stage's gradients summed over all replicas: in rounds of pairs, in each of which both have the
// sum of the two (recursive doubling). After log2(replicas) rounds all have the same sum, to the bit, since an addition
// does not depend on which of the two comes first.
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
/// All of a stage, round after round. Of a power of two.
std::vector<ReplicaPair> replicaPairs(int replicas);

/// The root of the pair whose other replica this is and whose root's stage is on `device`. Unique where
/// checkReplicas() finds nothing.
int rootOfPair(const PipelineShape& shape, int stage, int device, int other);

/// What keeps gradients from being summed over the replicas. Placements are of the right size.
Diagnostics checkReplicas(const PipelineShape& shape);

} // namespace pipewright
