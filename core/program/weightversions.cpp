// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/weightversions.h"

#include <algorithm>
#include <set>

namespace pipewright {

namespace {

/// The weight gradient's half needs what was kept, not the weights.
bool readsWeightsAtAll(Op op)
{
    switch (op) {
    case Op::F:
    case Op::B:
    case Op::I: return true;
    case Op::W:
    case Op::U:
    case Op::R: return false;
    }
    return false;
}

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

/// Cyclic schedules pass one sum from worker to worker; it is nobody's own where states are sharded. With synchronous
/// weights all workers end at once: each device hands its own to the update, which adds them up.
std::vector<PartialSum> partialSums(const OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule)
{
    std::vector<PartialSum> sums;
    if (schedule.inTurn.empty())
        return sums;
    const auto leaves = [&](BlockIndex from, BlockIndex to) {
        return schedule.shardedStates || graph.deviceOfBlock[from] != graph.deviceOfBlock[to];
    };
    for (std::size_t stage = 0; stage < plan.updates.size(); ++stage)
        for (std::size_t update = 0; update < plan.updates[stage].size(); ++update) {
            const BlockIndex u = plan.updates[stage][update];
            BlockIndex previous = noBlock;
            std::map<int, BlockIndex> lastOfDevice;
            for (const std::int32_t m : plan.batches[stage][update]) {
                const BlockIndex block = gradientOf(graph, static_cast<int>(stage), m);
                if (block == noBlock)
                    continue;
                if (chainsGradients(schedule) && previous != noBlock && leaves(previous, block))
                    sums.push_back({previous, block});
                previous = block;
                lastOfDevice[graph.deviceOfBlock[block]] = block;
            }
            if (chainsGradients(schedule)) {
                if (previous != noBlock && leaves(previous, u))
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
    case BufferKind::SentWeights:
    case BufferKind::ReceivedWeights: return BufferKind::ReceivedWeights;
    case BufferKind::PartialGradient: return BufferKind::ReceivedPartialGradient;
    case BufferKind::Gradient: return BufferKind::ReceivedGradient;
    case BufferKind::Parameters:
    case BufferKind::Gradients:
    case BufferKind::OptimizerState:
    case BufferKind::SavedUntilInputGrad:
    case BufferKind::SavedUntilWeightGrad:
    case BufferKind::SavedFromInputGrad:
    case BufferKind::SequenceGradient:
    case BufferKind::ReceivedOutput:
    case BufferKind::ReceivedGradient:
    case BufferKind::Workspace:
    case BufferKind::ReduceInbox:
    case BufferKind::WeightVersion:
    case BufferKind::PredictedWeights:
    case BufferKind::ReceivedPartialGradient: break;
    }
    throw Error("program", "a buffer is sent that never leaves its device",
                "report this with the design: it is a fault of the compiler");
}

void addWeightInputs(OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule)
{
    if (schedule.inTurn.empty() || !plan.versioned())
        return;
    for (const PartialSum& sum : partialSums(graph, plan, schedule))
        graph.skipInputs.push_back({sum.to, sum.from, 0, OrderGraph::SkipInput::Kind::PartialGradient});
    if (schedule.shardedStates)
        WeightHops(graph, plan, schedule).eachHop(plan, [&graph](BlockIndex reader, BlockIndex from) {
            graph.skipInputs.push_back({reader, from, 0, OrderGraph::SkipInput::Kind::UpdatedWeights});
        });
    std::set<std::tuple<int, int, int>> seen; // stage, version, device
    for (BlockIndex i = 0; i < graph.blocks.size() && !schedule.shardedStates; ++i) {
        const Block& block = graph.blocks[i];
        const int version = plan.reads[i].version;
        if (!readsWeightsAtAll(block.op) || version == 0)
            continue;
        const auto& updates = plan.updates[static_cast<std::size_t>(block.stage)];
        if (static_cast<std::size_t>(version) > updates.size())
            continue; // only while blocks are missing
        const BlockIndex update = updates[static_cast<std::size_t>(version) - 1];
        if (seen.insert({block.stage, version, graph.deviceOfBlock[i]}).second)
            graph.skipInputs.push_back({i, update, 0, OrderGraph::SkipInput::Kind::UpdatedWeights});
    }
    std::stable_sort(graph.skipInputs.begin(), graph.skipInputs.end(),
                     [](const auto& a, const auto& b) { return a.block < b.block; });
}

WeightTasks::WeightTasks(Program& program, const Schedule& schedule, const Costs& costs, const OrderGraph& graph,
                         const WeightPlan& plan)
    : TaskWriter(program, schedule, costs), m_graph(graph), m_plan(plan), m_hops(graph, plan, schedule),
      m_expected(schedule.shardedStates ? graph.blocks.size() : 0)
{
    for (int stage = 0; stage < schedule.stages(); ++stage) {
        copyOf(stage, schedule.deviceOfStage[static_cast<std::size_t>(stage)]);
        if (!schedule.inTurn.empty() && !schedule.shardedStates)
            for (const int device : schedule.inTurn[static_cast<std::size_t>(stage)])
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
    return readsWeightsAtAll(op) && (read.steps == 0 || read.madeBy == block);
}

WeightUse WeightTasks::useOf(BlockIndex block) const
{
    const WeightRead& read = m_plan.reads[block];
    const auto& batches = m_plan.batches[static_cast<std::size_t>(m_graph.blocks[block].stage)];
    const auto update = static_cast<std::size_t>(read.update);
    return {read.version, read.steps, read.update,
            update < batches.size() ? static_cast<std::int32_t>(batches[update].size()) : 1};
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
    last = beginTask(TaskKind::PutInPlace, Op::U, stage, version - 1, device, owner, last);
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
    const int device = m_schedule.deviceOfStage[static_cast<std::size_t>(stage)];
    const BufferId copy = addBuffer(BufferKind::SentWeights, device, stage, version,
                                    m_costs.stages[static_cast<std::size_t>(stage)].parameters);
    operand(copy);
    handOn(task, device, copy, first, outgoing);
}

void WeightTasks::handOn(TaskId task, int device, BufferId buffer, BlockIndex next, std::vector<Outgoing>& outgoing)
{
    if (m_graph.deviceOfBlock[next] == device) {
        m_hops.at(next) = {buffer, none};
        return;
    }
    const Outgoing out{task, m_graph.deviceOfBlock[next], next, buffer, &m_hops.at(next)};
    if (m_expected[next])
        outgoing.push_back(out);
    else
        m_waiting.emplace(next, out);
}

void WeightTasks::sendOut(BlockIndex block, std::vector<TaskId>& lastOnDevice, std::vector<Outgoing>& outgoing)
{
    if (!m_schedule.shardedStates)
        return;
    const BlockIndex end = m_graph.firstOfDevice[static_cast<std::size_t>(m_graph.deviceOfBlock[block]) + 1];
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
        if (m_hops.first(stage, 0) != reader || !m_setOut.insert(stage).second)
            continue;
        const int keeper = m_schedule.deviceOfStage[static_cast<std::size_t>(stage)];
        TaskId& last = lastOnDevice[static_cast<std::size_t>(keeper)];
        last = beginTask(TaskKind::SetOut, Op::U, stage, 0, keeper, keeper, last);
        endReads();
        handOut(last, stage, 0, outgoing);
        m_program.weights.resize(m_program.tasks.size());
        m_program.weights[last] = {0, 0, -1, 1};
    }
}

void WeightTasks::prepare(BlockIndex block, TaskId& last)
{
    if (m_schedule.inTurn.empty() || m_schedule.shardedStates || !readsWeights(block))
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
    if (m_schedule.shardedStates && readsWeights(block)) {
        const Arrival& here = m_hops.at(block);
        operand(here.buffer);
        waitFor(task, here.task);
    } else if (readsWeights(block)) {
        Copy& copy = copyOf(m_graph.blocks[block].stage, m_graph.deviceOfBlock[block]);
        --copy.reads[read.version];
        if (read.version < copy.resident)
            operand(copy.older[read.version]);
    } else if (read.steps > 0 && readsWeightsAtAll(m_graph.blocks[block].op)) {
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
        if (m_schedule.inTurn.empty() || m_schedule.shardedStates)
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
            for (BlockIndex i = m_graph.firstOfDevice[static_cast<std::size_t>(place.second)];
                 i < m_graph.firstOfDevice[static_cast<std::size_t>(place.second) + 1] && reader == noBlock; ++i)
                if (m_graph.blocks[i].stage == block.stage && readsWeights(i)
                    && m_plan.reads[i].version == copy.resident)
                    reader = i;
            outgoing.push_back({task, place.second, reader, sent, &m_sent[{block.stage, copy.resident, place.second}]});
        }
        return;
    }
    if (read.steps > 0 && read.madeBy == index && readsWeightsAtAll(block.op)) {
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
        next != noBlock && m_hops.at(index).buffer != none) // else its U is missing
        handOn(task, device, m_hops.at(index).buffer, next, outgoing);
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
