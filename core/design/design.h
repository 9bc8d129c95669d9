// SPDX-License-Identifier: GPL-3.0-or-later
// A design is what a person saves: the model and how it is cut into stages, the cluster, the schedule and
// the costs that hold for them. A plain value; files/designfile.h reads and writes it.
#pragma once

#include "core/buildingblock/buildingblock.h"
#include "core/cluster/cluster.h"
#include "core/design/costs.h"
#include "core/design/dataflow.h"
#include "core/schedule/schedule.h"
#include "core/sharding/statedplan.h"
#include "core/workload/workload.h"

#include <optional>
#include <string>

namespace pipewright {

struct Design {
    std::string name;
    std::optional<Workload> workload; ///< absent when costs were given by hand
    std::vector<int> layersPerStage;  ///< partition; sums to the workload's layers (embedding and head included)
    Cluster cluster;
    Schedule schedule;
    std::optional<RepeatedBlock> buildingBlock; ///< a person's own, of which the schedule was made; the schedule counts
    Costs costs;
    Dataflow dataflow;
    /// How the group that holds a stage shares it out, by stage; empty, or one that states nothing: synthesised.
    std::vector<sharding::StatedPlan> plans;
    bool operator==(const Design&) const = default;
};

} // namespace pipewright
