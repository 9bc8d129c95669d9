// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/newdesign.h"

#include "core/workload/stagecosts.h"

#include <algorithm>

namespace pipewright {

namespace {

/// One device's worth of work, on average, for the families that search and for costs without a model.
DeviceWorth worthOf(const Costs& costs, int devices)
{
    DeviceWorth worth{0, 0, 0, costs.link.latency, 0, 0, false};
    for (const StageCosts& stage : costs.stages) {
        worth.forward += stage.forward;
        worth.inputGrad += stage.inputGrad;
        worth.weightGrad += stage.weightGrad;
        worth.saved += stage.savedUntilInputGrad + stage.savedUntilWeightGrad;
        worth.savedForWeightGrad += stage.savedUntilWeightGrad;
    }
    const int count = std::max(1, devices);
    worth.forward /= count;
    worth.inputGrad /= count;
    worth.weightGrad /= count;
    worth.saved /= count;
    worth.savedForWeightGrad /= count;
    return worth;
}

void takeTimes(FamilyParameters& parameters, const DeviceWorth& worth)
{
    parameters.forward = std::max<Nanoseconds>(1, worth.forward);
    parameters.inputGrad = std::max<Nanoseconds>(1, worth.inputGrad);
    parameters.weightGrad = std::max<Nanoseconds>(1, worth.weightGrad);
    parameters.transfer = worth.transfer;
}

/// Partition, costs and shared parameters of the design's schedule from its workload and cluster.
void applyFormula(Design& design)
{
    design.layersPerStage = evenPartition(*design.workload, design.schedule.stages());
    design.dataflow = {};
    design.costs = formulaCosts(*design.workload, design.layersPerStage, design.cluster, design.schedule.deviceOfStage, &design.dataflow);
}

} // namespace

Design makeDesign(const NewDesign& choice)
{
    Design design;
    design.workload = choice.workload;
    design.cluster = choice.cluster;
    const int devices = static_cast<int>(choice.cluster.devices.size());

    FamilyParameters parameters;
    parameters.devices = devices;
    parameters.microbatches = choice.microbatches;
    parameters.chunks = choice.chunks;
    parameters.group = choice.group;
    parameters.memoryLimit = choice.memoryLimit;
    // Families that search want the times of a device; the plain split over the devices gives them.
    if (devices > 0 && devices <= choice.workload.shape.layers) {
        std::vector<int> deviceOfStage(static_cast<std::size_t>(devices));
        for (int d = 0; d < devices; ++d)
            deviceOfStage[static_cast<std::size_t>(d)] = d;
        const Costs plain = formulaCosts(choice.workload, evenPartition(choice.workload, devices), design.cluster, deviceOfStage);
        DeviceWorth worth = worthOf(plain, devices);
        worth.transfer = plain.stages.empty() ? 0 : plain.link.transferTime(plain.stages.front().output);
        takeTimes(parameters, worth);
    }
    design.schedule = makeSchedule(choice.family, parameters);
    applyFormula(design);
    design.name = titleOf(design);
    return design;
}

Design withFamily(const Design& base, const Family& family)
{
    FamilyParameters parameters;
    parameters.devices = base.schedule.devices();
    parameters.microbatches = base.schedule.microbatches;
    DeviceWorth worth = worthOf(base.costs, parameters.devices);
    if (!base.costs.stages.empty())
        worth.transfer = base.costs.link.transferTime(base.costs.stages.front().output);
    takeTimes(parameters, worth);

    Design design = base;
    design.schedule = makeSchedule(family.name, parameters);
    const bool sameStages = design.schedule.stages() == base.schedule.stages()
                            && design.schedule.deviceOfStage == base.schedule.deviceOfStage;
    if (!sameStages) {
        if (base.workload && base.costs.source.starts_with("formula")) {
            applyFormula(design);
        } else if (base.workload && !base.layersPerStage.empty()) {
            design.layersPerStage = evenPartition(*base.workload, design.schedule.stages());
            design.costs = recutCosts(*base.workload, base.costs, base.layersPerStage, design.layersPerStage);
            design.dataflow.shared = sharedParametersOf(*base.workload, design.layersPerStage);
        } else {
            const std::string source = base.costs.source;
            design.costs = uniformCosts(worth, design.schedule.stages(), design.schedule.chunks());
            design.costs.source = source;
            design.dataflow = {};
            design.layersPerStage.clear();
        }
    }
    if (base.name == titleOf(base))
        design.name = titleOf(design);
    return design;
}

std::string titleOf(const Design& design)
{
    const Family* family = findFamily(design.schedule.family);
    const std::string model = design.workload ? design.workload->shape.name : "schedule";
    const int stages = design.schedule.stages();
    return model + " · " + std::to_string(stages) + (stages == 1 ? " stage" : " stages") + " · "
           + (family ? std::string(family->title) : design.schedule.family);
}

} // namespace pipewright
