// SPDX-License-Identifier: GPL-3.0-or-later
// What drawn replicas share out beyond the optimizer's state (ZeRO 2 and 3), while the blocks are written in global
// order. Blocks add gradients to a buffer for all of a stage, which lives from the stage's first backward to the last
// sum over the replicas; behind that sum a replica keeps its share (stepend.h). Where parameters are shared out, too, a
// device makes room for all of a stage before its blocks read them (gatherplan.h), with its own share in place, and the
// other replicas' devices send theirs: these change only with the stage's update, so no block need come to an end for
// it. O(1) per block and O(replicas) per gathering.
#pragma once

#include "core/program/gatherplan.h"
#include "core/program/globalorder.h"
#include "core/program/taskwriter.h"

#include <optional>
#include <vector>

namespace pipewright {

class ReplicaShares : TaskWriter {
public:
    /// Whether a step has any.
    static bool areIn(const PipelineShape& shape) { return shape.sharesGradientsOfReplicas(); }

    /// Keeps references to all.
    ReplicaShares(Program& program, const Schedule& schedule, const Costs& costs, const Dataflow& dataflow,
                  const OrderGraph& graph);

    /// Before all blocks that start at an instant: devices whose blocks start together send each other shares before
    /// these blocks, not behind them. `lastOnDevice`: each device's last task, which is updated.
    void addGathersOf(const GlobalOrder& order, std::size_t instant, std::vector<TaskId>& lastOnDevice);
    /// Before a block, unless its gathers are there already: those of its device behind one that takes no time.
    void addGathersBefore(BlockIndex block, std::vector<TaskId>& lastOnDevice);

    /// The task of a block reads its stage's gathered parameters, and what it adds gradients to …
    void read(TaskId task, const Block& block);
    /// … or makes the buffer for them.
    void write(const Block& block, int device);

    /// Where a stage's gradients are added up; none before its first backward.
    BufferId gradientsOf(int stage, int replica) const { return m_stages[at(stage, replica)].gradients; }

private:
    /// Of one replica.
    struct Stage {
        Bytes gradientBytes = 0, parameterBytes = 0;
        BufferId gradients = none, parameters = none;
        std::vector<TaskId> arrivals{}; ///< of other shares, for which no reader has waited
    };
    std::size_t at(int stage, int replica) const
    {
        return static_cast<std::size_t>(replica) * static_cast<std::size_t>(m_program.stages())
               + static_cast<std::size_t>(stage);
    }
    void gather(const Block& reader, std::vector<TaskId>& lastOnDevice);

    const OrderGraph& m_graph;
    std::optional<GatherPlan> m_plan;
    std::vector<Stage> m_stages;           ///< replica by replica
    std::vector<std::size_t> m_nextGather; ///< per device: of the plan
};

} // namespace pipewright
