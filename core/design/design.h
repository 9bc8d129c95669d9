// SPDX-License-Identifier: GPL-3.0-or-later
// A design is the document that the user saves: the model and its partition into stages, the cluster, the schedule and
// their costs. A plain value; files/designfile.h reads and writes it.
#pragma once

#include "core/buildingblock/buildingblock.h"
#include "core/cluster/cluster.h"
#include "core/design/costs.h"
#include "core/design/dataflow.h"
#include "core/model/workload.h"
#include "core/schedule/schedule.h"
#include "core/sharding/statedplan.h"

#include <optional>
#include <string>

namespace pipewright {

struct Design {
    // Out of line: inlined, each is kilobytes of code in every file that uses one.
    Design();
    Design(const Design& other);
    Design(Design&& other) noexcept;
    Design& operator=(const Design& other);
    Design& operator=(Design&& other) noexcept;
    ~Design();

    std::string name;
    std::optional<Workload> workload; ///< absent when costs were given by hand
    std::vector<int> layersPerStage;  ///< partition; sums to the workload's layers (embedding and head included)
    Cluster cluster;
    Schedule schedule;
    std::optional<RepeatedBlock> buildingBlock; ///< the user's own, source of the schedule, which takes precedence
    Costs costs;
    Dataflow dataflow;
    /// The sharding plan of the group that holds a stage, by stage; empty, or an entry that states nothing:
    /// synthesised.
    std::vector<sharding::StatedPlan> plans;
    bool operator==(const Design& other) const;
};

/// What the products of its model multiply; Own without a model.
inline ProductType productsOf(const Design& design)
{
    return design.workload ? design.workload->shape.products : ProductType::Own;
}

} // namespace pipewright
