// SPDX-License-Identifier: GPL-3.0-or-later
// Dependencies that data parallel workers add to the graph: a block may need the gradient sum that another device
// has accumulated so far, or the weights that another device has updated. O(blocks log blocks).
#pragma once

#include "core/schedule/weighthops.h"
#include "core/schedule/weightplan.h"

#include <vector>

namespace pipewright {

/// A gradient sum that block `from` has accumulated and block `to`, on another device, adds to its own.
struct PartialSum {
    BlockIndex from, to;
};

/// All gradient sums that change devices; those for one receiver in the order in which it adds them. A cyclic
/// schedule passes one sum from worker to worker, through every block where states are sharded. With synchronous
/// weights every device sends its sum to the update.
std::vector<PartialSum> partialSums(const OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule);

/// Adds both kinds of dependency to the graph, where several devices work on a stage.
void addWeightInputs(OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule);

} // namespace pipewright
