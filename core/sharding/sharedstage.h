// SPDX-License-Identifier: GPL-3.0-or-later
// A pipeline stage that a group of devices holds together: its part of the model as a tensor graph, the program
// and ratios synthesised for it. What it costs the pipeline is design/groupcosts.h's business. One microbatch
// goes through the whole program; gradients are reduced within the group with every microbatch.
#pragma once

#include "core/sharding/modelgraph.h"
#include "core/sharding/shardingplan.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace pipewright::sharding {

struct SharedStage {
    TensorGraph graph;
    Machine machine;
    ShardingPlan plan;
};

/// Which part of the model layers [first, first + count) of the workload are, embedding and head counted.
LayerRange rangeOf(const Workload& workload, int first, int count);

/// Plans stages and remembers them, since most stages of a model and most candidates of a search are alike.
class SharedStages {
public:
    /// Throws Error as stageGraph, machineOf and planSharding do; places are of the group: "cluster.devices.1.memory".
    /// After a stop the plan is what there was by then.
    const SharedStage& plan(const Workload& workload, int first, int count, const DeviceSpec& group,
                            std::stop_token stop = {});

private:
    struct Known {
        ModelShape shape;
        StateBytesPerParameter state;
        LayerRange range;
        Cluster group;
        SharedStage stage;
    };
    std::vector<std::unique_ptr<Known>> m_known;
};

} // namespace pipewright::sharding
