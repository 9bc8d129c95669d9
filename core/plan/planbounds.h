// SPDX-License-Identifier: GPL-3.0-or-later
// What plans cannot go below: all of a setting, and each by the order of its blocks.
#pragma once

#include "core/plan/flatorder.h"
#include "core/plan/layercosts.h"
#include "core/plan/plan.h"

#include <span>

namespace pipewright {

struct PlanBounds {
    Nanoseconds step = 0;
    Bytes peak = 0;
};

/// Of every plan of a setting whose microbatches are not cut: a device's share of the step's blocks, when all devices
/// have the same, and its share of the states and of what one microbatch has saved when its last forward ends.
/// `recompute` and `zero`: which of those that `costs` was made for. O(layers).
PlanBounds boundsOf(const PlanSetting& setting, const LayerCosts& costs, std::size_t recompute, std::size_t zero);

/// Of one plan, without running its blocks: a device has all of its own to do once the first one comes there, and holds
/// the smallest of its stages for as many forwards as are open at once. O(stages + layers).
PlanBounds quickBoundsOf(const FlatOrder& order, const KindCosts& kinds, std::span<const int> layersPerStage,
                         const PlanSetting& setting, const LayerCosts& costs, std::size_t zero);

/// Of one plan: its blocks as they run when nothing else holds them up, then what its states add: the sum of gradients,
/// the update, gathering. `run` is of `order` with the costs of these stages. O(layers).
PlanBounds boundsOf(const FlatOrder& order, const FlatRun& run, std::span<const int> layersPerStage,
                    const PlanSetting& setting, const LayerCosts& costs, std::size_t zero);

/// Of a setting whose devices are of several kinds, or whose layers are not costed one by one: from the costs of as
/// many stages as there are devices. Throws Error when the setting cannot be.
PlanBounds plainBounds(const PlanSetting& setting, const Workload& workload, const Cluster& cluster);

/// Whichever of these holds for the plan, made from nothing. Throws Error when the plan cannot be.
PlanBounds boundsOf(const PlanRequest& request, const PlanSetting& setting, const PlanOrder& order);

/// Why drawn copies that run both ways cannot share states out so; empty: they can.
std::string whyNotShared(const FlatOrder& order, const PlanSetting& setting);

/// A model in pieces of sequences, where a family cuts them; otherwise 1. `layers`: in place of the model's.
Workload workloadOf(const PlanRequest& request, const PlanSetting& setting, int pieces = 1,
                    std::optional<int> layers = std::nullopt);
std::shared_ptr<const Cluster> clusterOf(const PlanRequest& request, const PlanSetting& setting);

/// The device that has least memory, or the request's limit; 0: not known.
Bytes memoryLimitOf(const PlanRequest& request, const Cluster& cluster);

} // namespace pipewright
