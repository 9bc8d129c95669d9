// SPDX-License-Identifier: GPL-3.0-or-later
// Replaces a stage's times and bytes by those of the group's synthesised program. O(layers) per stage, without the
// synthesis itself.
#include "core/design/groupcosts.h"

#include "core/sharding/memberpasses.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

namespace {

/// Per member, its share of the whole.
struct Shares {
    std::vector<double> state, kept;
};

Shares sharesOnMembers(const sharding::SharedStage& shared)
{
    const TensorGraph& graph = shared.graph;
    double wholeState = 0, wholeKept = 0;
    for (int t = 0; t < graph.size(); ++t)
        if (graph.node(t).leaf == Leaf::Parameter)
            wholeState += graph.node(t).elements() * graph.stateBytesPerParameter;
        else
            wholeKept += graph.bytesOf(t);
    const std::size_t members = shared.machine.devices();
    Shares shares{std::vector<double>(members, 0.0), std::vector<double>(members, 0.0)};
    for (const sharding::ShardingInstruction& instruction : shared.plan.program.instructions) {
        const bool state = !instruction.computes() && instruction.action == sharding::Action::Load
                           && graph.node(instruction.tensor).leaf == Leaf::Parameter;
        const auto& ratios = shared.plan.ratios[instruction.after.relation.segment];
        for (std::size_t d = 0; d < members; ++d)
            (state ? shares.state : shares.kept)[d] += (instruction.heldWhole + instruction.heldSplit * ratios[d])
                                                       / std::max(1.0, state ? wholeState : wholeKept);
    }
    return shares;
}

/// Members wait for each other at collectives.
double passSeconds(const sharding::PartSeconds& pass)
{
    double sum = std::accumulate(pass.collectives.begin(), pass.collectives.end(), 0.0);
    for (const std::vector<double>& part : pass.parts)
        sum += *std::max_element(part.begin(), part.end());
    return sum;
}

void scaleBytes(double state, double kept, StageCosts& stage)
{
    const auto scale = [](double share, std::initializer_list<Bytes*> sizes) {
        for (Bytes* size : sizes)
            *size = std::llround(share * static_cast<double>(*size));
    };
    scale(state, {&stage.parameters, &stage.gradients, &stage.optimizerState, &stage.gatheredParameters,
                  &stage.wholeGradients});
    scale(kept, {&stage.savedUntilInputGrad, &stage.savedUntilWeightGrad, &stage.savedFromInputGrad,
                 &stage.sparedByBackward, &stage.recomputedUntilInputGrad, &stage.recomputedUntilWeightGrad,
                 &stage.sequenceGradient, &stage.workspaceForward, &stage.workspaceInputGrad,
                 &stage.workspaceWeightGrad, &stage.workspaceBackward, &stage.workspaceRecompute});
}

/// The share of the fullest member, scaled to the smallest memory.
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

void applyGroupCosts(const sharding::SharedStage& shared, const DeviceSpec& group, StageCosts& stage)
{
    const sharding::MemberPasses passes = memberPasses(shared.plan.program, shared.graph);
    const auto nanoseconds = [](double seconds) { return static_cast<Nanoseconds>(std::llround(seconds * 1e9)); };
    const auto time = [&](const sharding::MemberPass& pass) {
        return nanoseconds(passSeconds(partSeconds(pass, shared.plan.program, shared.machine, shared.plan.ratios)));
    };
    stage.forward = time(passes.forward);
    stage.inputGrad = time(passes.inputGrad);
    stage.weightGrad = time(passes.weightGrad);
    stage.fillInTimes();
    stage.parts = {}; // a group's collectives block its compute

    const Shares shares = sharesOnMembers(shared);
    const auto touched = static_cast<double>(2 * (stage.parameters + stage.optimizerState) + stage.gradients);
    double update = 0;
    for (std::size_t d = 0; d < shares.state.size(); ++d)
        if (const double bandwidth = shared.machine.memoryBandwidth[d]; bandwidth > 0)
            update = std::max(update, shares.state[d] * touched / bandwidth);
    stage.update = nanoseconds(update);
    scaleBytes(fullest(shares.state, group), fullest(shares.kept, group), stage);
}

std::vector<StageCosts> memberCosts(const sharding::SharedStage& shared, const StageCosts& whole)
{
    const Shares shares = sharesOnMembers(shared);
    std::vector<StageCosts> members(shares.state.size(), whole);
    for (std::size_t m = 0; m < members.size(); ++m)
        scaleBytes(shares.state[m], shares.kept[m], members[m]);
    return members;
}

} // namespace pipewright
