// SPDX-License-Identifier: GPL-3.0-or-later
// Buffers and tasks of weight versions, as planned in core/schedule/weightplan: weight stashing (PipeDream, arXiv
// 1806.03377), prediction (SpecTrain, arXiv 1809.02839) and the hand-over between data parallel workers (CDP, arXiv
// 2403.08837). A version is copied only when a later block reads it. O(log (stages x devices)) per block.
#include "core/program/weightversions.h"

#include <algorithm>
#include <set>

namespace pipewright {

WeightTasks::WeightTasks(Program& program, const Schedule& schedule, const Costs& costs, const OrderGraph& graph,
                         const WeightPlan& plan)
    : TaskWriter(program, schedule, costs), m_graph(graph), m_plan(plan), m_hops(graph, plan, schedule),
      m_expected(schedule.shardedStates ? graph.blocks.size() : 0)
{
    for (int stage = 0; stage < schedule.stages(); ++stage) {
        copyOf(stage, schedule.deviceOfStage[stage]);
        if (!schedule.dataParallelDevices.empty() && !schedule.shardedStates)
            for (const int device : schedule.dataParallelDevices[stage])
                copyOf(stage, device);
    }
    for (BlockIndex i = 0; i < graph.blocks.size(); ++i)
        if (readsWeights(i) && !schedule.shardedStates)
            ++copyOf(graph.blocks[i].stage, graph.deviceOfBlock[i]).reads[plan.reads[i].version];
    for (const PartialSum& sum : partialSums(graph, plan, schedule)) {
        std::vector<Flow>& flows = m_partial[sum.to];
        m_partialTo[sum.from] = {sum.to, flows.size()};
        flows.push_back({sum.from, {}});
    }
}

bool WeightTasks::readsWeights(BlockIndex block) const
{
    const Op op = m_graph.blocks[block].op;
    const WeightRead& read = m_plan.reads[block];
    return usesWeights(op) && (read.steps == 0 || read.madeBy == block);
}

WeightUse WeightTasks::useOf(BlockIndex block) const
{
    const WeightRead& read = m_plan.reads[block];
    const auto& batches = m_plan.batches[m_graph.blocks[block].stage];
    const auto update = static_cast<std::size_t>(read.update);
    return {read.version, read.steps, read.update,
            update < batches.size() ? static_cast<std::int32_t>(batches[update].size()) : 1};
}

/// The newest weights are about to be replaced: keeps a copy when a later block reads them.
void WeightTasks::setAside(Copy& copy, int stage, int device)
{
    if (copy.reads[copy.resident] <= 0)
        return;
    const BufferId buffer =
        addBuffer(BufferKind::WeightVersion, device, stage, copy.resident, m_costs.stages[stage].parameters);
    operand(buffer);
    copy.older[copy.resident] = buffer;
}

void WeightTasks::copyWeightsIn(int stage, int device, int version, TaskId& last)
{
    const Arrival arrival = m_sent[{stage, version, device}];
    Copy& copy = copyOf(stage, device);
    const int owner = m_schedule.deviceOfStage[stage];
    last = beginTask(TaskKind::CopyWeightsIn, Op::U, stage, version - 1, device, owner, last);
    waitFor(last, arrival.task);
    operand(arrival.buffer);
    endReads();
    setAside(copy, stage, device);
    m_program.weights.resize(m_program.tasks.size());
    m_program.weights[last] = {copy.resident, 0, version - 1, 1};
    copy.resident = version;
}

/// A copy of the version in a stage's Parameters, written by `task`, for the block that reads it first.
void WeightTasks::handOut(TaskId task, int stage, int version, std::vector<Outgoing>& outgoing)
{
    const BlockIndex first = m_hops.first(stage, version);
    if (first == noBlock)
        return;
    const int device = m_schedule.deviceOfStage[stage];
    const BufferId copy = addBuffer(BufferKind::SentWeights, device, stage, version, m_costs.stages[stage].parameters);
    operand(copy);
    handOn(task, device, copy, first, outgoing);
}

void WeightTasks::handOn(TaskId task, int device, BufferId buffer, BlockIndex next, std::vector<Outgoing>& outgoing)
{
    if (m_graph.deviceOfBlock[next] == device) {
        m_handedOn[next] = {buffer, none};
        return;
    }
    const Outgoing out{task, m_graph.deviceOfBlock[next], next, buffer, &m_handedOn[next]};
    if (m_expected[next])
        outgoing.push_back(out);
    else
        m_waiting.emplace(next, out);
}

void WeightTasks::sendOut(BlockIndex block, std::vector<TaskId>& lastOnDevice, std::vector<Outgoing>& outgoing)
{
    if (!m_schedule.shardedStates)
        return;
    const BlockIndex end = m_graph.firstOfDevice[m_graph.deviceOfBlock[block] + 1];
    BlockIndex next = block + 1;
    while (next < end && m_graph.blocks[next].op == Op::U)
        ++next;
    for (const BlockIndex reader : {block, next}) {
        if (reader == end || m_graph.blocks[reader].op == Op::U)
            continue;
        m_expected[reader] = true;
        if (const auto waiting = m_waiting.extract(reader))
            outgoing.push_back(waiting.mapped());
        if (m_plan.reads[reader].version != 0)
            continue;
        const int stage = m_graph.blocks[reader].stage;
        if (m_hops.first(stage, 0) != reader || !m_copiedOut.insert(stage).second)
            continue;
        const int keeper = m_schedule.deviceOfStage[stage];
        TaskId& last = lastOnDevice[keeper];
        last = beginTask(TaskKind::CopyWeightsOut, Op::U, stage, 0, keeper, keeper, last);
        endReads();
        handOut(last, stage, 0, outgoing);
        m_program.weights.resize(m_program.tasks.size());
        m_program.weights[last] = {0, 0, -1, 1};
    }
}

void WeightTasks::prepare(BlockIndex block, TaskId& last)
{
    if (m_schedule.dataParallelDevices.empty() || m_schedule.shardedStates || !readsWeights(block))
        return;
    const int stage = m_graph.blocks[block].stage, device = m_graph.deviceOfBlock[block];
    if (m_plan.reads[block].version > copyOf(stage, device).resident)
        copyWeightsIn(stage, device, m_plan.reads[block].version, last);
}

void WeightTasks::read(TaskId task, BlockIndex block)
{
    m_program.weights.resize(m_program.tasks.size());
    m_program.weights[task] = useOf(block);
    const WeightRead& read = m_plan.reads[block];
    if (m_schedule.shardedStates && readsWeights(block)) {
        const Arrival& here = m_handedOn[block];
        operand(here.buffer);
        waitFor(task, here.task);
    } else if (readsWeights(block)) {
        Copy& copy = copyOf(m_graph.blocks[block].stage, m_graph.deviceOfBlock[block]);
        --copy.reads[read.version];
        if (read.version < copy.resident)
            operand(copy.older[read.version]);
    } else if (read.steps > 0 && usesWeights(m_graph.blocks[block].op)) {
        if (const auto made = m_predicted.find(read.madeBy); made != m_predicted.end())
            operand(made->second);
    }
    if (const auto partial = m_partial.find(block); partial != m_partial.end())
        for (const Flow& flow : partial->second) {
            operand(flow.arrival.buffer);
            waitFor(task, flow.arrival.task);
        }
}

void WeightTasks::write(TaskId task, BlockIndex index, std::vector<Outgoing>& outgoing)
{
    const Block& block = m_graph.blocks[index];
    const int device = m_graph.deviceOfBlock[index];
    const auto stage = static_cast<std::size_t>(block.stage);
    const StageCosts& costs = m_costs.stages[stage];
    const WeightRead& read = m_plan.reads[index];
    if (block.op == Op::U) {
        Copy& copy = copyOf(block.stage, device);
        setAside(copy, block.stage, device);
        copy.resident = read.update + 1;
        if (m_schedule.shardedStates)
            handOut(task, block.stage, copy.resident, outgoing);
        if (m_schedule.dataParallelDevices.empty() || m_schedule.shardedStates)
            return;
        const bool isLast = static_cast<std::size_t>(copy.resident) == m_plan.updates[stage].size();
        BufferId sent = none;
        for (auto& [place, other] : m_copies) {
            if (place.first != block.stage || place.second == device || (other.reads[copy.resident] <= 0 && !isLast))
                continue;
            if (sent == none)
                operand(sent =
                            addBuffer(BufferKind::SentWeights, device, block.stage, copy.resident, costs.parameters));
            BlockIndex reader = noBlock;
            for (BlockIndex i = m_graph.firstOfDevice[place.second];
                 i < m_graph.firstOfDevice[place.second + 1] && reader == noBlock; ++i)
                if (m_graph.blocks[i].stage == block.stage && readsWeights(i)
                    && m_plan.reads[i].version == copy.resident)
                    reader = i;
            outgoing.push_back({task, place.second, reader, sent, &m_sent[{block.stage, copy.resident, place.second}]});
        }
        return;
    }
    if (read.steps > 0 && read.madeBy == index && usesWeights(block.op)) {
        const BufferId made =
            addBuffer(BufferKind::PredictedWeights, device, block.stage, read.version, costs.parameters);
        operand(made);
        m_predicted[index] = made;
    }
    if (const auto to = m_partialTo.find(index); to != m_partialTo.end()) {
        const BlockIndex taker = to->second.first;
        const BufferId sum =
            addBuffer(BufferKind::PartialGradient, device, block.stage, block.microbatch, costs.gradients);
        operand(sum);
        Arrival& arrival = m_partial[taker][to->second.second].arrival;
        if (m_graph.deviceOfBlock[taker] == device)
            arrival = {sum, none};
        else
            outgoing.push_back({task, m_graph.deviceOfBlock[taker], taker, sum, &arrival});
    }
    if (const BlockIndex next = m_hops.after(index);
        next != noBlock && m_handedOn[index].buffer != none) // else its U is missing
        handOn(task, device, m_handedOn[index].buffer, next, outgoing);
}

void WeightTasks::finish(std::vector<TaskId>& lastOnDevice)
{
    for (auto& [place, copy] : m_copies) {
        const auto versions = static_cast<std::int32_t>(m_plan.updates[place.first].size());
        if (copy.resident < versions && m_sent.contains({place.first, versions, place.second}))
            copyWeightsIn(place.first, place.second, versions, lastOnDevice[place.second]);
    }
    m_program.weights.resize(m_program.tasks.size());
}

} // namespace pipewright
