// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/replicashares.h"

namespace pipewright {

ReplicaShares::ReplicaShares(Program& program, const Schedule& schedule, const Costs& costs, const Dataflow& dataflow)
    : TaskWriter(program, schedule, costs)
{
    for (int replica = 0; replica < schedule.replicas(); ++replica)
        for (int stage = 0; stage < schedule.stages(); ++stage)
            m_stages.push_back({stageState(schedule, costs, dataflow, stage, replica).gradients});
}

void ReplicaShares::read(const Block& block)
{
    if (isBackward(block.op))
        operand(gradientsOf(block.stage, block.replica));
}

void ReplicaShares::write(const Block& block, int device)
{
    Stage& stage = m_stages[at(block.stage, block.replica)];
    if (isBackward(block.op) && stage.gradientBytes > 0 && stage.gradients == none)
        operand(stage.gradients = addBuffer(BufferKind::WholeGradients, device, block.stage, -1, stage.gradientBytes,
                                            -1, false, block.replica));
}

} // namespace pipewright
