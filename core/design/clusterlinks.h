// SPDX-License-Identifier: GPL-3.0-or-later
// The links of a cluster as costs: between any two devices by where they stand (cluster/nodes.h), and to the host.
#pragma once

#include "core/cluster/cluster.h"
#include "core/design/costs.h"
#include "core/design/dataflow.h"
#include "core/model/modelshape.h"

namespace pipewright {

LinkCosts linkCosts(const LinkSpec& link);
/// The link between any two devices: as sends reach it by the devices' rates (core/rates), where these know it.
LinkCosts linkCosts(const Cluster& cluster);

/// Of the schedule's devices, which are the cluster's, each of them a group of such members; empty where all stand on
/// one node. Throws Error when the nodes have fewer devices. O(devices in all).
NodeLinks nodeLinksOf(const Cluster& cluster, const Parallelism& parallel);

/// Replaces all links of the costs by the cluster's. Throws like nodeLinksOf().
void takeClusterLinks(const Cluster& cluster, const Parallelism& parallel, Costs& costs);

/// Where nodes say how long reducing a shared parameter takes, states it, before other links take their place.
void keepReduceTime(const Dataflow& dataflow, const std::vector<int>& deviceOfStage, Costs& costs);

} // namespace pipewright
