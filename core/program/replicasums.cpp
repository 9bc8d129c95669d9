// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/replicasums.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace pipewright {

namespace {

constexpr Nanoseconds behindAll = std::numeric_limits<Nanoseconds>::max();

class SumPlanner {
public:
    SumPlanner(const PipelineShape& shape, const Costs& costs, const OrderGraph& graph, const OrderRun& run)
        : m_shape(shape), m_costs(costs), m_graph(graph), m_run(run), m_placed(graph.firstOfDevice.size() - 1),
          m_ready(static_cast<std::size_t>(shape.stages()) * static_cast<std::size_t>(shape.replicas()), 0),
          m_sumsLeft(m_ready.size(), 0)
    {
        std::vector<int> missing(m_ready.size(), shape.microbatches / shape.replicas());
        for (BlockIndex i = 0; i < graph.blocks.size(); ++i)
            if (const Block& block = graph.blocks[i]; makesWeightGrad(block.op)) {
                Nanoseconds& ready = m_ready[shareOf(block.stage, block.replica)];
                ready = std::max(ready, run.end[i]);
                --missing[shareOf(block.stage, block.replica)];
            }
        for (std::size_t share = 0; share < m_ready.size(); ++share)
            if (missing[share] > 0) // some are in the tray
                m_ready[share] = behindAll;
    }

    void keepBehindAll(int stage)
    {
        for (int replica = 0; replica < m_shape.replicas(); ++replica)
            m_ready[shareOf(stage, replica)] = behindAll;
    }

    std::vector<PlannedReplicaSum> plan()
    {
        std::vector<PlannedReplicaSum> sums;
        for (const ReplicaPair& pair : replicaPairs(m_shape.replicas()))
            for (int stage = 0; stage < m_shape.stages(); ++stage) {
                sums.push_back({stage, pair, 0});
                for (const int replica : {pair.root, pair.other})
                    ++m_sumsLeft[shareOf(stage, replica)];
            }
        // Within a round, sums are placed in the order in which they become ready.
        const auto roundBegins = [&](std::size_t first) {
            std::size_t end = first;
            while (end < sums.size() && sums[end].pair.round == sums[first].pair.round)
                ++end;
            return end;
        };
        for (std::size_t first = 0; first < sums.size();) {
            const std::size_t end = roundBegins(first);
            std::stable_sort(sums.begin() + static_cast<std::ptrdiff_t>(first),
                             sums.begin() + static_cast<std::ptrdiff_t>(end),
                             [&](const auto& a, const auto& b) { return readyOf(a) < readyOf(b); });
            for (std::size_t i = first; i < end; ++i)
                place(sums[i]);
            first = end;
        }
        std::stable_sort(sums.begin(), sums.end(), [](const PlannedReplicaSum& a, const PlannedReplicaSum& b) {
            return std::pair(a.at, a.pair.round) < std::pair(b.at, b.pair.round);
        });
        return sums;
    }

private:
    struct Span {
        Nanoseconds start = 0, end = 0;
    };

    std::size_t shareOf(int stage, int replica) const
    {
        return static_cast<std::size_t>(replica) * static_cast<std::size_t>(m_shape.stages())
               + static_cast<std::size_t>(stage);
    }
    int deviceOf(int stage, int replica) const { return m_shape.placement(replica)[static_cast<std::size_t>(stage)]; }
    Nanoseconds readyOf(const PlannedReplicaSum& sum) const
    {
        return std::max(m_ready[shareOf(sum.stage, sum.pair.root)], m_ready[shareOf(sum.stage, sum.pair.other)]);
    }

    void place(PlannedReplicaSum& sum)
    {
        const int root = deviceOf(sum.stage, sum.pair.root), other = deviceOf(sum.stage, sum.pair.other);
        // The stage is updated after its last sum, unless it still receives the complete sum from another replica.
        bool isLast = sum.pair.other < m_shape.replicas() - static_cast<int>(replicaCopies(m_shape.replicas()).size());
        for (const int replica : {sum.pair.root, sum.pair.other})
            isLast = --m_sumsLeft[shareOf(sum.stage, replica)] == 0 && isLast;
        const Nanoseconds exchange = replicaSumTime(m_shape, sum.stage, sum.pair, m_costs);
        const Nanoseconds length =
            exchange
            + (isLast && updatesAmidTheBlocks(m_shape, m_costs) ? updateTime(m_shape, false, m_costs, sum.stage) : 0);
        sum.at = readyOf(sum);
        if (root == other || m_costs.stages[static_cast<std::size_t>(sum.stage)].gradients == 0)
            sum.at = behindAll; // nothing is exchanged
        if (sum.at == behindAll)
            return;
        for (bool moved = true; moved;) {
            const Nanoseconds from = sum.at;
            for (const int device : {root, other})
                sum.at = firstFree(device, sum.at, length);
            moved = sum.at != from;
        }
        for (const int device : {root, other})
            m_placed[static_cast<std::size_t>(device)].push_back({sum.at, sum.at + length});
        for (const int replica : {sum.pair.root, sum.pair.other})
            m_ready[shareOf(sum.stage, replica)] = sum.at + exchange;
    }

    /// The first time at or after `from` at which the device is free for `length`.
    Nanoseconds firstFree(int device, Nanoseconds from, Nanoseconds length) const
    {
        const auto d = static_cast<std::size_t>(device);
        const auto isInTheWay = [&](const Span& busy) { return busy.start < from + length && busy.end > from; };
        const auto blocks = m_run.end.begin();
        auto next = std::upper_bound(blocks + m_graph.firstOfDevice[d], blocks + m_graph.firstOfDevice[d + 1], from);
        for (bool moved = true; moved;) {
            moved = false;
            for (; next != blocks + m_graph.firstOfDevice[d + 1]; ++next) {
                const Span busy{m_run.start[static_cast<std::size_t>(next - blocks)], *next};
                if (busy.start >= from + length)
                    break;
                if (isInTheWay(busy))
                    from = busy.end;
            }
            for (const Span& busy : m_placed[d])
                if (isInTheWay(busy)) {
                    from = busy.end;
                    moved = true;
                }
        }
        return from;
    }

    const PipelineShape& m_shape;
    const Costs& m_costs;
    const OrderGraph& m_graph;
    const OrderRun& m_run;
    std::vector<std::vector<Span>> m_placed; ///< per device: sums
    std::vector<Nanoseconds> m_ready;        ///< per replica and stage: when its sum so far is complete
    std::vector<int> m_sumsLeft;             ///< likewise: to be placed
};

/// In bytes, of fp32 values where the bytes are of these.
template<typename Share>
ReplicaShare inBytes(Bytes gradients, Share share)
{
    constexpr auto each = static_cast<Bytes>(sizeof(float));
    const Bytes unit = gradients % each == 0 ? each : 1;
    const ReplicaShare values = share(gradients / unit);
    return {values.begin * unit, values.end * unit};
}

} // namespace

ReplicaShare summedGradients(const PipelineShape& shape, Bytes gradients, const ReplicaPair& pair, int replica)
{
    if (!shape.sharesOptimizer())
        return {0, gradients};
    return inBytes(gradients, [&](Bytes count) { return keptBehind(count, pair, replica, shape.replicas()); });
}

ReplicaShare updatingGradients(const PipelineShape& shape, Bytes gradients, int replica)
{
    return inBytes(gradients, [&](Bytes count) { return updatedBy(shape, count, replica); });
}

ExchangedGradients exchangedGradients(const PipelineShape& shape, Bytes gradients, const ReplicaPair& pair)
{
    return {summedGradients(shape, gradients, pair, pair.root).count(),
            summedGradients(shape, gradients, pair, pair.other).count()};
}

Bytes movedBytes(const Program& program, TaskId transfer)
{
    Bytes bytes = 0;
    const std::span<const BufferId> from = program.reads(transfer);
    for (std::size_t i = 0; i < from.size(); ++i) {
        const Bytes whole = program.buffers.bytes(from[i]);
        const BufferKind kind = program.buffers.kind(from[i]);
        bytes += kind == BufferKind::Gradients || kind == BufferKind::WholeGradients
                     ? updatingGradients(program, whole, program.buffers[program.writes(transfer)[i]].replica).count()
                     : whole;
    }
    return bytes;
}

BufferId persistentBuffer(const Program& program, BufferKind kind, int stage, int replica)
{
    BufferId first = 0;
    while (program.buffers.kind(first) == BufferKind::Framework)
        ++first;
    return first + static_cast<BufferId>(3 * (replica * program.stages() + stage)) + static_cast<BufferId>(kind);
}

ReplicaShare gatheredPart(const Program& program, int stage, int replica)
{
    const int replicas = program.replicas();
    const auto placeOf = [&](int of) { return shareOfReplica(replicas, of, replicas).begin; }; // of one value each
    const auto bytesOf = [&](int of) {
        return program.buffers.bytes(persistentBuffer(program, BufferKind::Parameters, stage, of));
    };
    ReplicaShare part;
    for (int other = 0; other < replicas; ++other)
        part.begin += placeOf(other) < placeOf(replica) ? bytesOf(other) : 0;
    part.end = part.begin + bytesOf(replica);
    return part;
}

Bytes shareOfBytes(Bytes whole, const StageCosts& stage, int replica, int replicas)
{
    const Bytes parameters = stage.gradients / static_cast<Bytes>(sizeof(float));
    if (parameters > 0 && whole % parameters == 0)
        return whole / parameters * shareOfReplica(parameters, replica, replicas).count();
    return shareOfReplica(whole, replica, replicas).count();
}

StageState keptBy(const PipelineShape& shape, const StageCosts& stage, const StageState& whole, int replica)
{
    StageState kept = whole;
    if (shape.sharesOptimizer())
        kept.optimizer = shareOfBytes(whole.optimizer, stage, replica, shape.replicas());
    if (shape.sharesGradientsOfReplicas())
        kept.gradients = 0; // there are none before a step's first backward
    if (shape.sharesParametersOfReplicas())
        kept.parameters = shareOfBytes(whole.parameters, stage, replica, shape.replicas());
    return kept;
}

Nanoseconds updateTime(const PipelineShape& shape, bool amid, const Costs& costs, int stage)
{
    Nanoseconds whole = costs.duration(Op::U, stage);
    if (shape.sharesOptimizer())
        whole = (whole + shape.replicas() - 1) / shape.replicas();
    const StageCosts& of = costs.stages[static_cast<std::size_t>(stage)];
    return whole + (amid || shape.replicas() > 1 ? of.reduceGradients + of.gather : 0);
}

bool updatesAmidTheBlocks(const PipelineShape& shape, const Costs& costs)
{
    return shape.sharesOptimizer() && costs.communication != Communication::Blocking;
}

Nanoseconds replicaSumTime(const PipelineShape& shape, int stage, const ReplicaPair& pair, const Costs& costs)
{
    const auto at = static_cast<std::size_t>(stage);
    const int device = shape.placement(pair.root)[at], peer = shape.placement(pair.other)[at];
    if (device == peer)
        return 0;
    const ExchangedGradients bytes = exchangedGradients(shape, costs.stages[at].gradients, pair);
    const LinkCosts &there = costs.linkBetween(device, peer), &back = costs.linkBetween(peer, device);
    if (there.bus.empty() || there.bus != back.bus)
        return std::max(there.transferTime(bytes.toOther), back.transferTime(bytes.toRoot));
    const Nanoseconds first = there.wireTime(bytes.toOther);
    return std::max(there.latency + first, first + back.transferTime(bytes.toRoot));
}

ReplicaPair pairOf(const Program& program, const Task& task)
{
    return {rootReplica(program, task), task.replica, 0};
}

int rootReplica(const Program& program, const Task& task)
{
    return task.kind == TaskKind::ReplicaSum ? rootOfPair(program, task.stage, task.device, task.replica)
                                             : task.replica;
}

TaskId endOfBlocks(const Program& program)
{
    auto t = static_cast<TaskId>(program.tasks.size());
    while (t > 0 && program.tasks[t - 1].kind != TaskKind::Compute)
        --t;
    return t;
}

std::vector<PlannedReplicaSum> planReplicaSums(const PipelineShape& shape, const Costs& costs, const Dataflow& dataflow,
                                               const OrderGraph& graph, const OrderRun& run, bool commuted)
{
    if (shape.replicas() == 1)
        return {};
    SumPlanner planner(shape, costs, graph, run);
    for (const SharedParameter& shared : dataflow.shared)
        for (const int stage : {shared.rootStage, shared.otherStage})
            if (commuted && shared.joinsStages())
                planner.keepBehindAll(stage);
    return planner.plan();
}

} // namespace pipewright
