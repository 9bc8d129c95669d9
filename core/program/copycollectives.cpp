// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/copycollectives.h"

#include <algorithm>
#include <utility>

namespace pipewright {

bool CopyCollectives::areIn(const PipelineShape& shape, bool hasUpdates, const Costs& costs)
{
    return !hasUpdates && shape.replicas() == 1
           && std::any_of(costs.stages.begin(), costs.stages.end(),
                          [](const StageCosts& stage) { return stage.exchangesStates(); });
}

CopyCollectives::CopyCollectives(Program& program, const Schedule& schedule, const Costs& costs,
                                 const Dataflow& dataflow, const OrderGraph& graph)
    : TaskWriter(program, schedule, costs), m_graph(graph), m_stages(costs.stages.size()),
      m_devices(graph.firstOfDevice.size() - 1)
{
    for (std::size_t s = 0; s < m_stages.size(); ++s) {
        const StageState held = stageState(schedule, costs, dataflow, static_cast<int>(s), 0);
        m_stages[s].parameterBytes = held.gathered;
        // Summed once, the device's share lies in the whole sum; after each microbatch it is added to from outside.
        m_stages[s].gradientBytes =
            held.wholeGradients - (isSummedEach() ? 0 : std::min(held.gradients, held.wholeGradients));
    }
    for (const Block& block : graph.blocks)
        stageOf(block).gradientsLeft += int{makesWeightGrad(block.op)};
    if (schedule.zero.sharesParameters())
        m_plan.emplace(schedule, gatheredStages(schedule, costs, dataflow), graph);
}

TaskId CopyCollectives::beginCollective(TaskKind kind, const Block& block, int device, TaskId behind, TaskId& last)
{
    Device& own = m_devices[static_cast<std::size_t>(device)];
    const bool inOrder = m_program.blocks();
    const TaskId task =
        beginTask(kind, block.op, block.stage, block.microbatch, device, -1, inOrder ? last : own.last, behind);
    own.last = task;
    if (inOrder)
        last = task;
    return task;
}

void CopyCollectives::addGathersBefore(BlockIndex block, TaskId& last)
{
    if (!m_plan)
        return;
    const int device = m_graph.deviceOfBlock[block];
    Device& own = m_devices[static_cast<std::size_t>(device)];
    const std::span<const GatherPlan::Gather> plan = m_plan->ofDevice(device);
    const TaskId before = last;
    for (; own.next < plan.size() && plan[own.next].before == block; ++own.next) {
        const Block& reader = m_graph.blocks[plan[own.next].reader];
        Stage& stage = stageOf(reader);
        stage.gather = beginCollective(TaskKind::Gather, reader, device, before, last);
        endReads();
        if (stage.parameterBytes > 0)
            operand(stage.parameters = addBuffer(BufferKind::GatheredParameters, device, reader.stage,
                                                 reader.microbatch, stage.parameterBytes));
    }
}

void CopyCollectives::begin(TaskId task, int device)
{
    std::vector<TaskId>& open = m_devices[static_cast<std::size_t>(device)].open;
    for (; open.size() > 1; open.erase(open.begin()))
        waitFor(task, open.front());
}

void CopyCollectives::read(TaskId task, const Block& block)
{
    const Stage& stage = stageOf(block);
    if (isPass(block.op)) {
        operand(stage.parameters);
        waitFor(task, stage.gather);
    }
    if (makesWeightGrad(block.op))
        operand(stage.gradients);
}

void CopyCollectives::write(const Block& block, int device)
{
    Stage& stage = stageOf(block);
    if (makesWeightGrad(block.op) && stage.gradientBytes > 0 && stage.gradients == none)
        operand(stage.gradients =
                    addBuffer(BufferKind::WholeGradients, device, block.stage, block.microbatch, stage.gradientBytes));
}

void CopyCollectives::addSumAfter(BlockIndex block, TaskId task, TaskId& last)
{
    Device& own = m_devices[static_cast<std::size_t>(m_graph.deviceOfBlock[block])];
    if (m_graph.unitSize(block) > 1) { // nothing comes between the two of a pair
        own.held = block;
        own.heldTask = task;
        return;
    }
    if (const BlockIndex first = std::exchange(own.held, noBlock); first != noBlock)
        addSum(first, own.heldTask, last);
    addSum(block, task, last);
}

void CopyCollectives::addSum(BlockIndex index, TaskId task, TaskId& last)
{
    const Block& block = m_graph.blocks[index];
    if (!makesWeightGrad(block.op))
        return;
    Stage& stage = stageOf(block);
    if (--stage.gradientsLeft > 0 && !isSummedEach())
        return;
    const int device = m_graph.deviceOfBlock[index];
    stage.summed = beginCollective(TaskKind::ReduceGradients, block, device, task, last);
    operand(stage.gradients);
    endReads();
    if (std::exchange(stage.gradients, none) != none)
        m_devices[static_cast<std::size_t>(device)].open.push_back(stage.summed);
}

void CopyCollectives::addGatherAfter(int stage, TaskId update, TaskId& last)
{
    if (m_schedule.zero.level == 0 || m_plan || m_costs.stages[static_cast<std::size_t>(stage)].gather == 0)
        return;
    beginCollective(TaskKind::Gather, {Op::U, stage, 0, 0}, deviceOf(stage, 0), update, last);
    endReads();
}

} // namespace pipewright
