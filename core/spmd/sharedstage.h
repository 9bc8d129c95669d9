// SPDX-License-Identifier: GPL-3.0-or-later
// A pipeline stage that a group of devices holds together: its part of the model as a tensor graph, the program
// and ratios synthesised for it, and the costs that the pipeline sees instead of a single device's. One microbatch
// goes through the whole program; gradients are reduced within the group with every microbatch.
//
// Times are the program's. Bytes are the workload's own, times the share that the program leaves on a device; the
// lane of a group shows its fullest member in terms of the smallest memory, separately for what stays all the time
// and for activations: with members of one size that is a member's bytes, otherwise no less than any member needs.
#pragma once

#include "core/program/costs.h"
#include "core/spmd/modelgraph.h"
#include "core/spmd/shardplan.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace pipewright::spmd {

struct SharedStage {
    TensorGraph graph;
    Machine machine;
    ShardPlan plan;
};

/// Which part of the model layers [first, first + count) of the workload are, embedding and head counted.
LayerRange rangeOf(const Workload& workload, int first, int count);

/// `stage` holds the bytes of a single device; its times and bytes become those of the group's lane.
void applySharing(const SharedStage& shared, const DeviceSpec& group, StageCosts& stage);

/// Plans stages and remembers them, since most stages of a model and most candidates of a search are alike.
class SharedStages {
public:
    /// Throws Error as stageGraph, machineOf and planShards do; places are of the group: "cluster.devices.1.memory".
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

} // namespace pipewright::spmd
