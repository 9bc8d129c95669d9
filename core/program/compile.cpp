// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/compile.h"

#include "core/program/projection.h"
#include "core/program/tasksequence.h"
#include "core/program/transferorder.h"
#include "core/program/weightversions.h"
#include "core/schedule/ordergraph.h"

#include <fmt/format.h>

#include <array>

namespace pipewright {

namespace {

Diagnostics checkCosts(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow)
{
    Diagnostics diagnostics;
    if (costs.stages.size() != static_cast<std::size_t>(schedule.stages()))
        diagnostics.push_back({Severity::Error, "costs.stages",
                               fmt::format("costs of {} stages for a schedule of {}", costs.stages.size(), schedule.stages()),
                               "give one entry per stage"});
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
        const StageCosts& c = costs.stages[s];
        if (std::min({c.forward, c.inputGrad, c.weightGrad, c.backward, c.update, c.recompute}) < 0)
            diagnostics.push_back({Severity::Error, fmt::format("costs.stages, stage {}", s), "a negative time",
                                   "times are 0 or more"});
    }
    if (!costs.microbatches.empty() && costs.microbatches.size() != static_cast<std::size_t>(schedule.microbatches))
        diagnostics.push_back({Severity::Error, "costs.microbatches",
                               fmt::format("scales of {} microbatches for a schedule of {}", costs.microbatches.size(),
                                           schedule.microbatches),
                               "give one entry per microbatch, or none"});
    for (const MicrobatchScale& scale : costs.microbatches)
        if (!(scale.time >= 0 && scale.time <= 1e6 && scale.bytes >= 0 && scale.bytes <= 1e6))
            diagnostics.push_back({Severity::Error, "costs.microbatches",
                                   fmt::format("a microbatch {} times as long and {} times as large", scale.time, scale.bytes),
                                   "scales are between 0 and 1e6; 1 is the usual microbatch"});
    if (!(costs.overlapFactor >= 0 && costs.overlapFactor <= 1e6))
        diagnostics.push_back({Severity::Error, "costs.overlap_factor", fmt::format("{}", costs.overlapFactor),
                               "1: as long as one after the other; 0.5: both in the time of one"});
    for (const SharedParameter& shared : dataflow.shared)
        if (std::min(shared.rootStage, shared.otherStage) < 0
            || std::max(shared.rootStage, shared.otherStage) >= schedule.stages() || shared.rootStage == shared.otherStage)
            diagnostics.push_back({Severity::Error, "dataflow.shared",
                                   fmt::format("a parameter shared by stages {} and {}", shared.rootStage, shared.otherStage),
                                   "name two different stages of the schedule"});
    return diagnostics;
}

/// What updates amid a step cannot have.
void checkVersioned(const Schedule& schedule, const Dataflow& dataflow)
{
    if (!dataflow.shared.empty())
        throw Error("dataflow.shared",
                    fmt::format("stages {} and {} share a parameter, and the schedule updates its stages one by one",
                                dataflow.shared.front().rootStage, dataflow.shared.front().otherStage),
                    "use a model whose output head is its own (\"tied_head\": false), or a schedule without update blocks");
    if (!schedule.transferOrder.empty())
        throw Error("schedule.transfer_order", "the order of transfers is stated, and the schedule has update blocks",
                    "let transfers go where the data puts them: remove \"transfer_order\"");
}

/// Without loop commuting the root's W waits for the other owner's contribution of the same microbatch.
void addSharedGradientInputs(OrderGraph& graph, const Dataflow& dataflow, int microbatches)
{
    const auto last = [&](int stage, int m) {
        const BlockIndex full = graph.indexOf(Op::B, stage, m);
        return full != noBlock ? full : graph.indexOf(Op::W, stage, m);
    };
    for (std::uint32_t k = 0; k < dataflow.shared.size(); ++k)
        for (int m = 0; m < microbatches; ++m) {
            const BlockIndex root = last(dataflow.shared[k].rootStage, m), other = last(dataflow.shared[k].otherStage, m);
            if (root != noBlock && other != noBlock)
                graph.skipInputs.push_back({root, other, sharedGradientInput | k});
        }
    std::stable_sort(graph.skipInputs.begin(), graph.skipInputs.end(),
                     [](const auto& a, const auto& b) { return a.block < b.block; });
}

std::vector<Nanoseconds> earliestStarts(const Schedule& schedule, const OrderGraph& graph)
{
    std::vector<Nanoseconds> earliest;
    for (const Pin& pin : schedule.pins) {
        const Block& b = pin.block;
        if (b.op > Op::W || b.stage < 0 || b.stage >= schedule.stages() || b.microbatch < 0
            || b.microbatch >= schedule.microbatches || b.replica != schedule.replicaOf(b.microbatch))
            continue;
        const BlockIndex index = graph.indexOf(b.op, b.stage, b.microbatch);
        if (index == noBlock)
            continue;
        earliest.resize(graph.blocks.size(), 0);
        earliest[index] = std::max(earliest[index], pin.earliestStart);
    }
    return earliest;
}

/// Transfer time of the chain value that arrives at each stage: activations from the stage before,
/// gradients from the stage after; 0 on the same device. As for a usual microbatch: it only decides the order.
class ArrivalDelays {
public:
    ArrivalDelays(const Schedule& schedule, const Costs& costs)
        : m_stages(costs.stages.size()), m_activation(m_stages * static_cast<std::size_t>(schedule.replicas()), 0),
          m_gradient(m_activation)
    {
        for (int replica = 0; replica < schedule.replicas(); ++replica) {
            const std::vector<int>& placement = schedule.placement(replica);
            const std::size_t first = m_stages * static_cast<std::size_t>(replica);
            for (std::size_t s = 0; s + 1 < m_stages; ++s) {
                const int here = placement[s], there = placement[s + 1];
                if (here == there)
                    continue;
                m_activation[first + s + 1] = costs.linkBetween(here, there).transferTime(costs.stages[s].output);
                m_gradient[first + s] = costs.linkBetween(there, here).transferTime(costs.stages[s].output);
            }
        }
    }

    Nanoseconds of(const Block& block) const
    {
        const std::size_t at = m_stages * static_cast<std::size_t>(block.replica) + static_cast<std::size_t>(block.stage);
        return block.op == Op::F ? m_activation[at] : m_gradient[at];
    }

private:
    std::size_t m_stages;
    std::vector<Nanoseconds> m_activation, m_gradient; ///< per replica and stage
};

} // namespace

Program compile(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow, const CompileOptions& options)
{
    Diagnostics diagnostics;
    OrderGraph graph(schedule, dataflow.skips, options.allowMissing, diagnostics);
    if (hasErrors(diagnostics))
        throw Error(options.allowMissing ? std::move(diagnostics) : validate(schedule, dataflow.skips));
    diagnostics = checkCosts(schedule, costs, dataflow);
    if (hasErrors(diagnostics))
        throw Error(std::move(diagnostics));
    const WeightPlan weights = planWeights(schedule, graph, options.allowMissing, diagnostics);
    if (hasErrors(diagnostics))
        throw Error(std::move(diagnostics));
    if (weights.versioned())
        checkVersioned(schedule, dataflow);
    addWeightInputs(graph, weights, schedule);
    if (!options.commuteSharedGradients)
        addSharedGradientInputs(graph, dataflow, schedule.microbatches);

    const std::vector<Nanoseconds> earliest = earliestStarts(schedule, graph);
    const ArrivalDelays delays(schedule, costs);
    std::vector<std::array<Nanoseconds, opCount>> usual;
    for (const StageCosts& stage : costs.stages)
        usual.push_back({stage.forward, stage.backward, stage.inputGrad, stage.weightGrad, stage.update, stage.recompute});
    const auto alone = [&](BlockIndex i) {
        const Block& block = graph.blocks[i];
        return costs.microbatches.empty() ? usual[static_cast<std::size_t>(block.stage)][static_cast<std::size_t>(block.op)]
                                          : costs.duration(block.op, block.stage, block.microbatch);
    };
    const auto duration = [&](BlockIndex i) {
        return graph.unitSize(i) == 1 ? alone(i) : costs.overlapped(alone(i), alone(i + 1));
    };
    const auto delay = [&](BlockIndex input, BlockIndex block) {
        if (graph.chainInput[block] == input)
            return delays.of(graph.blocks[block]);
        const int from = graph.deviceOfBlock[input], to = graph.deviceOfBlock[block];
        return from == to ? 0 : costs.linkBetween(from, to).latency;
    };
    const OrderRun run = runOrder(graph, earliest, duration, delay);
    if (!run.stuck.empty())
        throw Error(run.stuck);

    Program program;
    program.stages = schedule.stages();
    program.chunks = schedule.chunks();
    program.microbatches = schedule.microbatches;
    program.replicas = schedule.replicas();
    program.sequencePieces = schedule.sequencePieces;
    program.blockingTransfers = costs.blockingTransfers;
    program.deviceOfStage = schedule.deviceOfStage;
    program.morePlacements = schedule.morePlacements;
    program.inTurn = schedule.inTurn;
    program.shardedStates = schedule.shardedStates;
    program.weightPolicy = schedule.weights;
    buildTaskSequence(program, schedule, graph, run, earliest, costs, dataflow, weights, options);
    applyTransferOrder(program, schedule.transferOrder, costs);
    projectOntoDevices(program, schedule.devices(), std::max(1, options.outstandingSends), projectionThreads(program));
    return program;
}

} // namespace pipewright
