// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/weightversions.h"

#include <algorithm>
#include <set>

namespace pipewright {

namespace {

/// The block that ends a microbatch's gradient; where stages are shared out, backwards are full.
BlockIndex gradientOf(const OrderGraph& graph, int stage, int microbatch)
{
    return graph.indexOf(Op::B, stage, microbatch);
}

bool chainsGradients(const Schedule& schedule)
{
    return schedule.weights.rule != WeightRule::Synchronous;
}

/// Who hands a gradient sum to whom, in the order in which a taker adds them up.
struct PartialSum {
    BlockIndex from, to;
};

/// Cyclic schedules pass one sum from worker to worker. With synchronous weights all workers end at once: each
/// device hands its own to the update, which adds them up.
std::vector<PartialSum> partialSums(const OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule)
{
    std::vector<PartialSum> sums;
    if (schedule.inTurn.empty())
        return sums;
    for (std::size_t stage = 0; stage < plan.updates.size(); ++stage)
        for (std::size_t update = 0; update < plan.updates[stage].size(); ++update) {
            const BlockIndex u = plan.updates[stage][update];
            BlockIndex previous = noBlock;
            std::map<int, BlockIndex> lastOfDevice;
            for (const std::int32_t m : plan.batches[stage][update]) {
                const BlockIndex block = gradientOf(graph, static_cast<int>(stage), m);
                if (block == noBlock)
                    continue;
                if (chainsGradients(schedule) && previous != noBlock && graph.deviceOfBlock[previous] != graph.deviceOfBlock[block])
                    sums.push_back({previous, block});
                previous = block;
                lastOfDevice[graph.deviceOfBlock[block]] = block;
            }
            if (chainsGradients(schedule)) {
                if (previous != noBlock && graph.deviceOfBlock[previous] != graph.deviceOfBlock[u])
                    sums.push_back({previous, u});
                continue;
            }
            std::vector<BlockIndex> others;
            for (const auto& [device, block] : lastOfDevice)
                if (device != graph.deviceOfBlock[u])
                    others.push_back(block);
            std::sort(others.begin(), others.end(), [&](BlockIndex a, BlockIndex b) {
                return graph.blocks[a].microbatch < graph.blocks[b].microbatch;
            });
            for (const BlockIndex block : others)
                sums.push_back({block, u});
        }
    return sums;
}

} // namespace

BufferKind receivedKind(BufferKind sent)
{
    switch (sent) {
    case BufferKind::Output: return BufferKind::ReceivedOutput;
    case BufferKind::SentWeights: return BufferKind::ReceivedWeights;
    case BufferKind::PartialGradient: return BufferKind::ReceivedPartialGradient;
    default: return BufferKind::ReceivedGradient;
    }
}

void addWeightInputs(OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule)
{
    if (schedule.inTurn.empty() || !plan.versioned())
        return;
    for (const PartialSum& sum : partialSums(graph, plan, schedule))
        graph.skipInputs.push_back({sum.to, sum.from, partialGradientInput});
    std::set<std::tuple<int, int, int>> seen; // stage, version, device
    for (BlockIndex i = 0; i < graph.blocks.size(); ++i) {
        const Block& block = graph.blocks[i];
        const int version = plan.reads[i].version;
        if ((block.op != Op::F && block.op != Op::B && block.op != Op::I) || version == 0)
            continue;
        const auto& updates = plan.updates[static_cast<std::size_t>(block.stage)];
        if (static_cast<std::size_t>(version) > updates.size())
            continue; // only while blocks are missing
        const BlockIndex update = updates[static_cast<std::size_t>(version) - 1];
        if (seen.insert({block.stage, version, graph.deviceOfBlock[i]}).second)
            graph.skipInputs.push_back({i, update, updatedWeightsInput});
    }
    std::stable_sort(graph.skipInputs.begin(), graph.skipInputs.end(), [](const auto& a, const auto& b) { return a.block < b.block; });
}

WeightTasks::WeightTasks(Program& program, const Schedule& schedule, const Costs& costs, const OrderGraph& graph, const WeightPlan& plan)
    : TaskWriter(program, schedule, costs), m_graph(graph), m_plan(plan)
{
    for (int stage = 0; stage < schedule.stages(); ++stage) {
        copyOf(stage, schedule.deviceOfStage[static_cast<std::size_t>(stage)]);
        if (!schedule.inTurn.empty())
            for (const int device : schedule.inTurn[static_cast<std::size_t>(stage)])
                copyOf(stage, device);
    }
    for (BlockIndex i = 0; i < graph.blocks.size(); ++i)
        if (readsWeights(i))
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
    return (op == Op::F || op == Op::B || op == Op::I) && (read.steps == 0 || read.madeBy == block);
}

WeightUse WeightTasks::useOf(BlockIndex block) const
{
    const WeightRead& read = m_plan.reads[block];
    const auto& batches = m_plan.batches[static_cast<std::size_t>(m_graph.blocks[block].stage)];
    const auto update = static_cast<std::size_t>(read.update);
    return {read.version, read.steps, read.update, update < batches.size() ? static_cast<std::int32_t>(batches[update].size()) : 1};
}

/// The newest weights are about to be replaced: keeps a copy when a later block reads them.
void WeightTasks::setAside(Copy& copy, int stage, int device)
{
    if (copy.reads[copy.resident] <= 0)
        return;
    const BufferId buffer = addBuffer(BufferKind::WeightVersion, device, stage, copy.resident,
                                      m_costs.stages[static_cast<std::size_t>(stage)].parameters);
    operand(buffer);
    copy.older[copy.resident] = buffer;
}

void WeightTasks::putInPlace(int stage, int device, int version, TaskId& last)
{
    const Arrival arrival = m_sent[{stage, version, device}];
    Copy& copy = copyOf(stage, device);
    const int owner = m_schedule.deviceOfStage[static_cast<std::size_t>(stage)];
    last = beginTask(TaskKind::Update, Op::U, stage, version - 1, device, owner, last);
    waitFor(last, arrival.task);
    operand(arrival.buffer);
    endReads();
    setAside(copy, stage, device);
    m_program.weights.resize(m_program.tasks.size());
    m_program.weights[last] = {copy.resident, 0, version - 1, 1};
    copy.resident = version;
}

void WeightTasks::prepare(BlockIndex block, TaskId& last)
{
    if (m_schedule.inTurn.empty() || !readsWeights(block))
        return;
    const int stage = m_graph.blocks[block].stage, device = m_graph.deviceOfBlock[block];
    if (m_plan.reads[block].version > copyOf(stage, device).resident)
        putInPlace(stage, device, m_plan.reads[block].version, last);
}

void WeightTasks::read(TaskId task, BlockIndex block)
{
    m_program.weights.resize(m_program.tasks.size());
    m_program.weights[task] = useOf(block);
    const WeightRead& read = m_plan.reads[block];
    if (readsWeights(block)) {
        Copy& copy = copyOf(m_graph.blocks[block].stage, m_graph.deviceOfBlock[block]);
        --copy.reads[read.version];
        if (read.version < copy.resident)
            operand(copy.older[read.version]);
    } else if (read.steps > 0 && m_graph.blocks[block].op != Op::W) {
        if (const auto made = m_predicted.find(read.madeBy); made != m_predicted.end())
            operand(made->second);
    }
    if (const auto partial = m_partial.find(block); partial != m_partial.end())
        for (const Flow& flow : partial->second) {
            operand(flow.arrival.buffer);
            waitFor(task, flow.arrival.task);
        }
}

void WeightTasks::write(TaskId, BlockIndex index, std::vector<Outgoing>& outgoing)
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
        if (m_schedule.inTurn.empty())
            return;
        const bool isLast = static_cast<std::size_t>(copy.resident) == m_plan.updates[stage].size();
        BufferId sent = none;
        for (auto& [place, other] : m_copies) {
            if (place.first != block.stage || place.second == device || (other.reads[copy.resident] <= 0 && !isLast))
                continue;
            if (sent == none)
                operand(sent = addBuffer(BufferKind::SentWeights, device, block.stage, copy.resident, costs.parameters));
            BlockIndex reader = noBlock;
            for (BlockIndex i = m_graph.firstOfDevice[static_cast<std::size_t>(place.second)];
                 i < m_graph.firstOfDevice[static_cast<std::size_t>(place.second) + 1] && reader == noBlock; ++i)
                if (m_graph.blocks[i].stage == block.stage && readsWeights(i) && m_plan.reads[i].version == copy.resident)
                    reader = i;
            outgoing.push_back({place.second, reader, sent, &m_sent[{block.stage, copy.resident, place.second}]});
        }
        return;
    }
    if (read.steps > 0 && read.madeBy == index && block.op != Op::W) {
        const BufferId made = addBuffer(BufferKind::PredictedWeights, device, block.stage, read.version, costs.parameters);
        operand(made);
        m_predicted[index] = made;
    }
    if (const auto to = m_partialTo.find(index); to != m_partialTo.end()) {
        const BlockIndex taker = to->second.first;
        const BufferId sum = addBuffer(BufferKind::PartialGradient, device, block.stage, block.microbatch, costs.gradients);
        operand(sum);
        outgoing.push_back({m_graph.deviceOfBlock[taker], taker, sum, &m_partial[taker][to->second.second].arrival});
    }
}

void WeightTasks::finish(std::vector<TaskId>& lastOnDevice)
{
    for (auto& [place, copy] : m_copies) {
        const auto versions = static_cast<std::int32_t>(m_plan.updates[static_cast<std::size_t>(place.first)].size());
        if (copy.resident < versions && m_sent.contains({place.first, versions, place.second}))
            putInPlace(place.first, place.second, versions, lastOnDevice[static_cast<std::size_t>(place.second)]);
    }
    m_program.weights.resize(m_program.tasks.size());
}

} // namespace pipewright
