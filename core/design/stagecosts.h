// SPDX-License-Identifier: GPL-3.0-or-later
// Workload x partition x cluster -> the costs of every stage. Times follow from rates by operation and shape where the
// device has them (operationtimes.h), else they are FLOPs over its sustained rate, good for shape rather than for the
// last percent: calibration replaces them by measured ones. Bytes are sums over the layers' kept tensors and are exact
// for what the executor allocates.
//
// Throughout: `layersPerStage` cuts the layers, in order, into stages; Error when it does not fit them.
#pragma once

#include "core/cluster/cluster.h"
#include "core/design/costs.h"
#include "core/design/dataflow.h"
#include "core/model/workload.h"
#include "core/sharding/statedplan.h"

#include <optional>
#include <span>
#include <vector>

namespace pipewright {

namespace sharding {
class SharedStages;
}

/// Times and bytes. `dataflow`, when given, gets the shared parameter of a tied head that is on another stage than its
/// embedding; previous entries are removed. The optimizer reads and writes its state and
/// the parameters and reads the gradients once, at memory bandwidth; so does an embedding with its output. On devices
/// with rates gradients are cleared and clipped besides, and bandwidth is what kernels reach. Reducing a shared
/// gradient is two transfers. The costs of a stage of a group are those of its synthesised program
/// (sharding/sharedstage.h), or of the program stated in `plans`; `known` keeps the programs for further calls. Throws
/// Error, also when a stage's device does not exist or has no rate.
Costs formulaCosts(const Workload& workload, const std::vector<int>& layersPerStage, const Cluster& cluster,
                   const std::vector<int>& deviceOfStage, Dataflow* dataflow = nullptr,
                   sharding::SharedStages* known = nullptr, const MemoryChoices& choices = {},
                   const std::vector<sharding::StatedPlan>& plans = {});

/// Only the bytes, so that times given by hand or measured can be combined with a model. `costs.stages`
/// gets as many stages as the partition has; existing times stay. `choices` are the schedule's. Throws Error for
/// stages that recompute what the model does not keep.
void applyBytes(const Workload& workload, const std::vector<int>& layersPerStage, const MemoryChoices& choices,
                Costs& costs);

/// The fraction of each stage's forward work that is done again.
std::vector<double> recomputedShares(const Workload& workload, const std::vector<int>& layersPerStage,
                                     Recompute recompute);

/// The times of recomputation in a stage that a group holds, from the time of its forward.
void recomputeInGroup(Recompute recompute, double shareOfForward, StageCosts& costs);

/// The model's layers, stage by stage. Throws Error for a cut that is not of this model.
std::vector<std::span<const Layer>> layersOfStages(const Workload& workload, const std::vector<int>& layersPerStage);

/// The shared parameter of a tied head. `copied`: as SharedParameter's; then a stage with both of its uses counts as
/// holding two parameters.
std::vector<SharedParameter> sharedParametersOf(const Workload& workload, const std::vector<int>& layersPerStage,
                                                bool copied);
/// As a prediction takes it: one parameter on one device. There are copies where devices are CPU threads, which train
/// with the built-in executors, and where they are groups, whose plan says what each member holds.
std::vector<SharedParameter> sharedParametersOn(const Cluster& cluster, const Workload& workload,
                                                const std::vector<int>& layersPerStage);

} // namespace pipewright
