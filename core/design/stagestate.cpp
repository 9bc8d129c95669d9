// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/stagestate.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace pipewright {

namespace {

Bytes part(Bytes whole, Bytes bytes, Bytes of)
{
    return std::llround(static_cast<long double>(whole) * static_cast<long double>(bytes)
                        / static_cast<long double>(of)); // the product may exceed 64 bits
}

} // namespace

StageState stageState(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow, int stage, int replica)
{
    const StageCosts& all = costs.stages[static_cast<std::size_t>(stage)];
    StageState held{all.parameters, all.gradients, all.optimizerState, all.gatheredParameters, all.wholeGradients};
    for (const SharedParameter& shared : dataflow.shared) {
        const auto& placement = schedule.placement(replica);
        const Bytes gradients = all.allGradients();
        if (shared.otherStage != stage || shared.copied || gradients <= 0
            || placement[static_cast<std::size_t>(shared.rootStage)] != placement[static_cast<std::size_t>(stage)])
            continue;
        const Bytes bytes = std::min(shared.bytes, gradients);
        if (const Bytes values = std::min(shared.values, all.allParameters()); values == 0) {
            held.parameters -= part(all.parameters, bytes, gradients);
            held.gathered -= part(all.gatheredParameters, bytes, gradients);
        } else if (all.gatheredParameters > 0) { // the device has a share of them, as large as that of its gradients
            held.parameters -= std::min(all.parameters, part(values, all.gradients, gradients));
            held.gathered -= values;
        } else {
            held.parameters -= values;
        }
        held.optimizer -= part(all.optimizerState, bytes, gradients);
        held.gradients -= part(all.gradients, bytes, gradients);
        held.wholeGradients -= part(all.wholeGradients, bytes, gradients);
    }
    return held;
}

std::vector<HeldBesides> heldBesides(const Schedule& schedule, const Costs& costs)
{
    constexpr int noneYet = -1;
    std::vector<HeldBesides> held(static_cast<std::size_t>(schedule.devices()), HeldBesides{0, noneYet});
    std::vector<Bytes> narrow(held.size());
    for (int replica = 0; replica < schedule.replicas(); ++replica)
        for (int stage = 0; stage < schedule.stages(); ++stage) {
            const auto at = static_cast<std::size_t>(stage);
            const auto device = static_cast<std::size_t>(schedule.placement(replica)[at]);
            if (held[device].stage == noneYet || costs.stages[at].framework > held[device].bytes)
                held[device] = {costs.stages[at].framework, stage};
            narrow[device] += costs.stages[at].narrowWeights;
        }
    for (std::size_t device = 0; device < held.size(); ++device)
        held[device].bytes += narrow[device];
    return held;
}

SparedState sparedByOneParameter(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow)
{
    std::map<int, Bytes> spared; // by device
    for (int replica = 0; replica < schedule.replicas(); ++replica)
        for (int stage = 0; stage < schedule.stages(); ++stage) {
            const StageCosts& all = costs.stages[static_cast<std::size_t>(stage)];
            spared[schedule.placement(replica)[static_cast<std::size_t>(stage)]] +=
                all.parameters + all.gradients + all.optimizerState
                - stageState(schedule, costs, dataflow, stage, replica).bytes();
        }
    SparedState most;
    for (const auto& [device, bytes] : spared)
        if (bytes > most.bytes)
            most = {bytes, device};
    return most;
}

} // namespace pipewright
