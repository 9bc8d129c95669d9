// SPDX-License-Identifier: GPL-3.0-or-later
// A pipeline stage held by a group of devices: its part of the model as a tensor graph, and the program and ratios
// synthesised for it. Its cost in the pipeline is computed in design/groupcosts.h. One microbatch runs through the
// whole program; gradients are reduced within the group for every microbatch.
#pragma once

#include "core/model/modelgraph.h"
#include "core/sharding/shardingplan.h"
#include "core/sharding/statedplan.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace pipewright::sharding {

struct SharedStage {
    TensorGraph graph;
    Machine machine;
    ShardingPlan plan;
};

struct PlannedStage; ///< a SharedStage with the inputs of its plan

/// The part of the model that layers [first, first + count) of the workload are; embedding and head count as layers.
LayerRange rangeOf(const Workload& workload, int first, int count);

/// The same, counted from the first layer that could differ: the graphs of stages with equal ranges are equal.
LayerRange stageRange(const Workload& workload, int first, int count);

/// Plans stages and keeps the plans, since most stages of a model and most candidates of a search are equal. The plans
/// that the program needed last are kept between searches too, for all threads: one design is costed, checked, drawn
/// and run.
class SharedStages {
public:
    /// Throws Error as stageGraph, machineOf and planOf() do; places are of the group: "cluster.devices.1.memory".
    /// After a stop the plan is the best one so far.
    const SharedStage& plan(const Workload& workload, int first, int count, const DeviceSpec& group,
                            const StatedPlan& stated = {}, std::stop_token stop = {});

private:
    std::vector<std::shared_ptr<const PlannedStage>> m_known;
};

} // namespace pipewright::sharding
