// SPDX-License-Identifier: GPL-3.0-or-later
// What blocks wait for besides activations and gradients of the chain, where several devices work on a stage: sums of
// gradients that another device began, and weights that another device updated. O(blocks log blocks).
#pragma once

#include "core/schedule/weighthops.h"
#include "core/schedule/weightplan.h"

#include <vector>

namespace pipewright {

/// Who hands a gradient sum to whom, in the order in which a taker adds them up.
struct PartialSum {
    BlockIndex from, to;
};

/// Cyclic schedules pass one sum from worker to worker; it is nobody's own where states are sharded. With synchronous
/// weights all workers end at once: each device hands its own to the update, which adds them up.
std::vector<PartialSum> partialSums(const OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule);

/// Where several devices work on a stage, adds to the graph who waits for whose gradient sum and for whose update.
void addWeightInputs(OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule);

} // namespace pipewright
