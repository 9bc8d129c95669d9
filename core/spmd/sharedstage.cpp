// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/spmd/sharedstage.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipewright::spmd {

namespace {

constexpr std::int64_t mostExpansions = 100'000; // no time limit: the same costs on every machine

/// Per member, the share of the whole that stands there.
struct Shares {
    std::vector<double> state, kept;
};

Shares sharesOnMembers(const SharedStage& shared)
{
    const TensorGraph& graph = shared.graph;
    double wholeState = 0, wholeKept = 0;
    for (int t = 0; t < graph.size(); ++t)
        if (graph.node(t).leaf == Leaf::Parameter)
            wholeState += graph.node(t).elements() * graph.stateBytesPerParameter;
        else
            wholeKept += graph.bytesOf(t);
    const auto members = static_cast<std::size_t>(shared.machine.devices());
    Shares shares{std::vector<double>(members, 0.0), std::vector<double>(members, 0.0)};
    for (const Instruction& instruction : shared.plan.program.instructions) {
        const bool state = !instruction.computes() && instruction.action == Action::Load
                           && graph.node(instruction.tensor).leaf == Leaf::Parameter;
        const auto& ratios = shared.plan.ratios[static_cast<std::size_t>(instruction.after.relation.segment)];
        for (std::size_t d = 0; d < members; ++d)
            (state ? shares.state : shares.kept)[d] += (instruction.heldWhole + instruction.heldSplit * ratios[d])
                                                       / std::max(1.0, state ? wholeState : wholeKept);
    }
    return shares;
}

/// Of the fullest member, in terms of the smallest memory.
double fullest(const std::vector<double>& shares, const DeviceSpec& group)
{
    const std::vector<DeviceSpec>& members = group.group->devices;
    double most = 0;
    for (std::size_t d = 0; d < shares.size(); ++d)
        most = std::max(most, group.memory > 0 ? shares[d] * static_cast<double>(group.memory)
                                                     / static_cast<double>(members[d].memory)
                                               : shares[d]);
    return most;
}

} // namespace

LayerRange rangeOf(const Workload& workload, int first, int count)
{
    const std::vector<Layer>& layers = workload.layers;
    LayerRange range;
    for (int l = 0; l < first + count; ++l) {
        const LayerKind kind = layers[static_cast<std::size_t>(l)].kind;
        if (hasAttention(kind))
            ++(l < first ? range.first : range.count);
        range.embedding = range.embedding || (l >= first && kind == LayerKind::Embedding);
    }
    range.head = first + count == static_cast<int>(layers.size());
    return range;
}

void applySharing(const SharedStage& shared, const DeviceSpec& group, StageCosts& stage)
{
    const CostParts parts = costParts(shared.plan.program, shared.machine, shared.plan.ratios);
    const auto nanoseconds = [](double seconds) { return static_cast<Nanoseconds>(std::llround(seconds * 1e9)); };
    stage.forward = stage.recompute = nanoseconds(parts.forward);
    stage.inputGrad = nanoseconds(parts.inputGrad);
    stage.weightGrad = nanoseconds(parts.weightGrad);
    stage.backward = stage.inputGrad + stage.weightGrad;

    const Shares shares = sharesOnMembers(shared);
    const auto touched = static_cast<double>(2 * (stage.parameters + stage.optimizerState) + stage.gradients);
    double update = 0;
    for (std::size_t d = 0; d < shares.state.size(); ++d)
        if (const double bandwidth = shared.machine.memoryBandwidth[d]; bandwidth > 0)
            update = std::max(update, shares.state[d] * touched / bandwidth);
    stage.update = nanoseconds(update);
    const auto scale = [](double share, std::initializer_list<Bytes*> sizes) {
        for (Bytes* size : sizes)
            *size = std::llround(share * static_cast<double>(*size));
    };
    scale(fullest(shares.state, group), {&stage.parameters, &stage.gradients, &stage.optimizerState});
    scale(fullest(shares.kept, group),
          {&stage.savedUntilInputGrad, &stage.savedUntilWeightGrad, &stage.savedFromInputGrad, &stage.sequenceGradient,
           &stage.workspaceForward, &stage.workspaceInputGrad, &stage.workspaceWeightGrad, &stage.workspaceBackward});
}

const SharedStage& SharedStages::plan(const Workload& workload, int first, int count, const DeviceSpec& group,
                                      std::stop_token stop)
{
    LayerRange range = rangeOf(workload, first, count);
    // Layers are alike but for those before the first with experts.
    range.first = workload.shape.experts > 0 ? std::min(range.first, workload.shape.denseLayers) : 0;
    for (const auto& known : m_known)
        if (known->range == range && known->group == *group.group && known->shape == workload.shape
            && known->state == workload.state)
            return known->stage;
    auto added = std::make_unique<Known>(
        Known{workload.shape, workload.state, range, *group.group, {{}, machineOf(*group.group), {}}});
    added->stage.graph = stageGraph(workload.shape, workload.state, range);
    PlanOptions options;
    options.maxExpansions = mostExpansions;
    options.deadline.stop = std::move(stop);
    added->stage.plan = planShards(added->stage.graph, added->stage.machine, options);
    m_known.push_back(std::move(added));
    return m_known.back()->stage;
}

} // namespace pipewright::spmd
