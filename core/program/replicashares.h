// SPDX-License-Identifier: GPL-3.0-or-later
// What drawn replicas share out beyond the optimizer's state (ZeRO 2 and 3), while the blocks are written in global
// order. Blocks add gradients to a buffer for all of a stage, which lives from the stage's first backward to the last
// sum over the replicas; behind that sum a replica keeps its share (stepend.h). O(1) per block.
#pragma once

#include "core/program/taskwriter.h"

#include <vector>

namespace pipewright {

class ReplicaShares : TaskWriter {
public:
    /// Whether a step has any.
    static bool areIn(const PipelineShape& shape) { return shape.sharesGradientsOfReplicas(); }

    /// Keeps references to all.
    ReplicaShares(Program& program, const Schedule& schedule, const Costs& costs, const Dataflow& dataflow);

    /// The task of a block reads what it adds gradients to …
    void read(const Block& block);
    /// … or makes it.
    void write(const Block& block, int device);

    /// Where a stage's gradients are added up; none before its first backward.
    BufferId gradientsOf(int stage, int replica) const { return m_stages[at(stage, replica)].gradients; }

private:
    /// Of one replica.
    struct Stage {
        Bytes gradientBytes = 0;
        BufferId gradients = none;
    };
    std::size_t at(int stage, int replica) const
    {
        return static_cast<std::size_t>(replica) * static_cast<std::size_t>(m_program.stages())
               + static_cast<std::size_t>(stage);
    }

    std::vector<Stage> m_stages; ///< replica by replica
};

} // namespace pipewright
