// SPDX-License-Identifier: GPL-3.0-or-later
// The clusters that plans are laid over: of so many pipeline devices, each of so many members, from a preset or file,
// or from the cluster of a design. Each is made once, and plans share it. For several threads.
#pragma once

#include "core/cluster/cluster.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace pipewright {

using PlanClusters = std::function<std::shared_ptr<const Cluster>(int devices, std::int64_t members)>;

/// Of a preset's name or a file. Throws Error when there is none.
PlanClusters planClusters(const std::string& presetOrFile);

/// Of a cluster at hand that has `has` devices: single ones that are all alike, with the same link between any two or
/// nodes; throws Error otherwise. Plans of more devices need nodes.
PlanClusters planClusters(const Cluster& cluster, std::int64_t has);

/// The same whose first node's devices compute and copy at rates that are lower by this share: the pipeline devices
/// that have a member there, as slow as their slowest member. Throws Error for a share that is none; the clusters do
/// where what they state is no node, or no peak rate.
PlanClusters withSlowNode(PlanClusters clusters, double slower);

} // namespace pipewright
