// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/replicashares.h"

#include <set>

namespace pipewright {

ReplicaShares::ReplicaShares(Program& program, const Schedule& schedule, const Costs& costs, const Dataflow& dataflow,
                             const OrderGraph& graph)
    : TaskWriter(program, schedule, costs), m_graph(graph), m_nextGather(graph.firstOfDevice.size() - 1)
{
    for (int replica = 0; replica < schedule.replicas(); ++replica)
        for (int stage = 0; stage < schedule.stages(); ++stage) {
            const StageState held = stageState(schedule, costs, dataflow, stage, replica);
            m_stages.push_back({held.gradients, held.parameters});
        }
    if (schedule.sharesParametersOfReplicas())
        m_plan.emplace(schedule, gatheredStages(schedule, costs, dataflow), graph);
}

void ReplicaShares::addGathersOf(const GlobalOrder& order, std::size_t instant, std::vector<TaskId>& lastOnDevice)
{
    if (!m_plan)
        return;
    std::set<int> seen;
    for (std::uint32_t rank = order.instants[instant]; rank < order.instants[instant + 1]; ++rank)
        if (const BlockIndex block = order.blocks[rank]; seen.insert(m_graph.deviceOfBlock[block]).second)
            addGathersBefore(block, lastOnDevice);
}

void ReplicaShares::addGathersBefore(BlockIndex block, std::vector<TaskId>& lastOnDevice)
{
    if (!m_plan)
        return;
    const int device = m_graph.deviceOfBlock[block];
    std::size_t& next = m_nextGather[static_cast<std::size_t>(device)];
    for (const auto plan = m_plan->ofDevice(device); next < plan.size() && plan[next].before == block; ++next)
        gather(m_graph.blocks[plan[next].reader], lastOnDevice);
}

void ReplicaShares::gather(const Block& reader, std::vector<TaskId>& lastOnDevice)
{
    Stage& stage = m_stages[at(reader.stage, reader.replica)];
    if (stage.parameterBytes == 0)
        return;
    const int device = deviceOf(reader.stage, reader.replica);
    TaskId& last = lastOnDevice[static_cast<std::size_t>(device)];
    const TaskId made = last = beginTask(TaskKind::CopyWeightsOut, Op::U, reader.stage, reader.microbatch, device,
                                         device, last, none, reader.replica);
    endReads();
    operand(stage.parameters = addBuffer(BufferKind::GatheredParameters, device, reader.stage, reader.microbatch,
                                         stage.parameterBytes, -1, false, reader.replica));
    stage.arrivals.clear();
    for (int step = 1; step < m_program.replicas(); ++step) { // from the next on, so that none sends to all at once
        const int owner = (reader.replica + step) % m_program.replicas();
        const BufferId share = persistentBuffer(m_program, BufferKind::Parameters, reader.stage, owner);
        if (m_program.buffers.bytes(share) == 0)
            continue;
        const int from = deviceOf(reader.stage, owner);
        const TaskId task = beginTask(TaskKind::Transfer, reader.op, reader.stage, reader.microbatch, from, device,
                                      none, made, reader.replica);
        if (m_program.blocks())
            holdUp(task, from, device, lastOnDevice);
        else if (const TaskId before = lastOnDevice[static_cast<std::size_t>(from)]; before != none)
            m_program.extraDependencies.push_back({task, before, 0}); // its device comes to it in order
        operand(share);
        endReads();
        operand(stage.parameters);
        stage.arrivals.push_back(task);
    }
}

void ReplicaShares::read(TaskId task, const Block& block)
{
    Stage& stage = m_stages[at(block.stage, block.replica)];
    operand(stage.parameters);
    for (const TaskId arrival : stage.arrivals)
        waitFor(task, arrival);
    stage.arrivals.clear(); // who reads them later comes behind this block
    if (isBackward(block.op))
        operand(stage.gradients);
}

void ReplicaShares::write(const Block& block, int device)
{
    Stage& stage = m_stages[at(block.stage, block.replica)];
    if (isBackward(block.op) && stage.gradients == none)
        operand(stage.gradients = addBuffer(BufferKind::WholeGradients, device, block.stage, -1, stage.gradientBytes,
                                            -1, false, block.replica));
}

} // namespace pipewright
