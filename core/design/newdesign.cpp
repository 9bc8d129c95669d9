// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/newdesign.h"

#include "core/design/familywork.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/schedule/replicas.h"
#include "core/schedule/weightplan.h"

#include <algorithm>

namespace pipewright {

namespace {

/// Partition, costs and shared parameters of the design's schedule from its workload and cluster.
void applyFormula(Design& design)
{
    design.layersPerStage = evenPartition(*design.workload, design.schedule.stages());
    design.dataflow = {};
    design.costs = formulaCosts(*design.workload, design.layersPerStage, design.cluster, design.schedule.deviceOfStage,
                                &design.dataflow, nullptr, design.schedule.memoryChoices());
}

} // namespace

Design designFromModel(const NewDesign& choice)
{
    Design design;
    design.workload = choice.workload;
    design.cluster = choice.cluster;
    const int all = static_cast<int>(choice.cluster.devices.size());
    const int devices = all / std::max(1, choice.replicas); // of one pipeline

    FamilyParameters parameters{choice};
    parameters.devices = all;
    // Families that search want the times and bytes of a device; the plain split over the devices gives them.
    if (devices > 0 && devices <= static_cast<int>(choice.workload.layers.size())) {
        std::vector<int> deviceOfStage(devices);
        for (int d = 0; d < devices; ++d)
            deviceOfStage[d] = d;
        Design plain = design;
        plain.layersPerStage = evenPartition(choice.workload, devices);
        plain.costs = formulaCosts(choice.workload, plain.layersPerStage, design.cluster, deviceOfStage);
        plain.schedule.deviceOfStage = deviceOfStage;
        takeWork(parameters, plain.costs);
        if (const Family* family = findFamily(choice.family))
            takeMemory(parameters, *family, plain);
    }
    Schedule schedule = makeSchedule(choice.family, parameters);
    design = withSequencePieces(design, schedule.sequencePieces);
    if (hasUpdates(schedule))
        design = withOwnHead(design);
    design.schedule = std::move(schedule);
    requireCopies(design, "--zero");
    applyFormula(design);
    design.name = titleOf(design);
    return design;
}

std::string titleOf(const Design& design)
{
    const Family* family = findFamily(design.schedule.family);
    const std::string model = design.workload ? design.workload->shape.name : "schedule";
    const int stages = design.schedule.stages(), copies = pipelinesOf(design.schedule);
    return model + " · " + std::to_string(stages) + (stages == 1 ? " stage" : " stages") + " · "
           + (copies > 1 ? std::to_string(copies) + " × " : "")
           + (family ? std::string(family->title) : design.schedule.family);
}

} // namespace pipewright
