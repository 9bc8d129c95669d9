// SPDX-License-Identifier: GPL-3.0-or-later
// O(stages + layers).
#include "core/design/familywork.h"

#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/families/searchinputs.h"

#include <algorithm>

namespace pipewright {

void takeWork(FamilyParameters& parameters, const Costs& costs)
{
    const int devices = std::max(1, parameters.devices / parameters.replicas);
    // The mean over the devices, each time with the mean host gap before its block.
    const auto mean = [&](Op op) {
        Nanoseconds gaps = 0, sum = 0;
        for (const HostGaps& device : costs.hostGaps)
            gaps += device.before[indexOf(op)];
        for (const StageCosts& stage : costs.stages)
            sum += stage.*timeField(op) + gaps / devices;
        return std::max<Nanoseconds>(1, sum / devices);
    };
    parameters.forward = mean(Op::F);
    parameters.inputGrad = mean(Op::I);
    parameters.weightGrad = mean(Op::W);
    const LinkCosts& hop = costs.slowestHop(devices);
    parameters.transfer = costs.stages.empty() ? hop.latency : hop.transferTime(costs.stages.front().output);
}

std::vector<StageSaved> memoryOfStages(const Costs& costs)
{
    std::vector<StageSaved> memory;
    Bytes all = 0, input = 0;
    for (const StageCosts& stage : costs.stages) {
        const Bytes recomputed = stage.recomputedUntilInputGrad + stage.recomputedUntilWeightGrad;
        const Bytes saved = stage.savedUntilInputGrad + stage.savedUntilWeightGrad;
        memory.push_back({saved + (recomputed > 0 ? input : 0),
                          stage.savedUntilWeightGrad + stage.recomputedUntilWeightGrad + stage.savedFromInputGrad});
        all += saved + recomputed;
        input = stage.output;
    }
    return all > 0 ? memory : std::vector<StageSaved>{};
}

namespace {

/// Without a model: the bytes of all stages, shared out evenly.
std::vector<StageSaved> sharedOut(const std::vector<StageSaved>& memory, std::size_t stages)
{
    StageSaved all;
    for (const StageSaved& stage : memory) {
        all.forward += stage.forward;
        all.inputGrad += stage.inputGrad;
    }
    const auto count = static_cast<Bytes>(stages);
    return std::vector<StageSaved>(memory.empty() ? 0 : stages, {all.forward / count, all.inputGrad / count});
}

} // namespace

void takeMemory(FamilyParameters& parameters, const Family& family, const Design& base,
                const std::vector<int>& layersPerStage, const std::vector<Recompute>& recompute)
{
    const bool standsIn = base.workload && base.workload->source.starts_with(standInSource)
                          && base.costs.sourceOrigin() == CostOrigin::Given;
    if (family.search == FamilySearch::None || standsIn)
        return;
    if (!base.schedule.recompute.empty()) // a limit counts in what whole microbatches keep
        return takeMemory(parameters, family, withRecompute(base, {}), layersPerStage, recompute);
    const std::vector<int> placement =
        searchPlacement(parameters.devices / std::max(1, parameters.replicas), family.defaultChunks);
    const bool sameCut = layersPerStage.empty() || layersPerStage == base.layersPerStage;
    if (sameCut && recompute.empty() && placement == base.schedule.deviceOfStage) {
        parameters.stageSaved = memoryOfStages(base.costs);
    } else if (base.workload && !base.layersPerStage.empty()) {
        Costs bytes;
        applyBytes(*base.workload,
                   layersPerStage.empty() ? evenPartition(*base.workload, static_cast<int>(placement.size()))
                                          : layersPerStage,
                   {recompute, {}}, bytes);
        parameters.stageSaved = memoryOfStages(bytes);
    } else {
        parameters.stageSaved = sharedOut(memoryOfStages(base.costs), placement.size());
    }
}

} // namespace pipewright
