// SPDX-License-Identifier: GPL-3.0-or-later
// Designs for tests: a schedule with its costs, a published family with round times, and a preset model on a preset
// cluster.
#pragma once

#include "core/design/designbuilder.h"
#include "core/design/newdesign.h"
#include "core/presets/presets.h"
#include "makers/costs.h"
#include "makers/schedules.h"

namespace pipewright::test {

inline Design designOf(Schedule schedule, Costs costs, std::string name = "test")
{
    Design design;
    design.name = std::move(name);
    design.schedule = std::move(schedule);
    design.costs = std::move(costs);
    return design;
}

inline Design unitDesign(Schedule schedule)
{
    Costs costs = unitCosts(schedule.stages());
    return designOf(std::move(schedule), std::move(costs));
}

inline Design evenDesign(const DeviceWorth& worth, Schedule schedule)
{
    Costs costs = evenCosts(worth, schedule);
    return designOf(std::move(schedule), std::move(costs));
}

/// One GPU with 80 GiB for every device.
inline void addDevices(Design& design)
{
    design.cluster.devices.resize(static_cast<std::size_t>(design.schedule.devices()));
    for (DeviceSpec& device : design.cluster.devices) {
        device.name = "H200";
        device.memory = Bytes{80} << 30;
    }
}

/// F 10 ms, I 10 ms, W 6 ms per device, transfers 1 ms, 1 GiB saved per microbatch.
inline Design familyDesign(const char* family = "zb-h1", int devices = 4, int microbatches = 8)
{
    Design design = evenDesign({.forward = 10'000'000,
                                .inputGrad = 10'000'000,
                                .weightGrad = 6'000'000,
                                .transfer = 1'000'000,
                                .saved = Bytes{1} << 30,
                                .savedForWeightGrad = Bytes{1} << 29},
                               familySchedule(family, devices, microbatches));
    design.name = family;
    addDevices(design);
    return design;
}

/// Times without a common divisor, so that no two sums of them are equal by accident, and every kind of buffer.
inline Design unroundDesign(const char* family, int devices, int microbatches)
{
    Design design = evenDesign({.forward = 1'000'003,
                                .inputGrad = 1'100'009,
                                .weightGrad = 700'001,
                                .transfer = 50'021,
                                .saved = 34 << 20,
                                .savedForWeightGrad = 14 << 20},
                               familySchedule(family, devices, microbatches));
    for (StageCosts& stage : design.costs.stages) {
        stage.output = 2 << 20;
        stage.savedFromInputGrad = 18 << 20;
    }
    return design;
}

inline DesignRequest requestFor(std::string_view family, int devices, int microbatches)
{
    DesignRequest request;
    request.family = family;
    request.devices = devices;
    request.microbatches = microbatches;
    return request;
}

/// F, I and W of a device in ms; everything that F keeps stays until W unless `kept` says otherwise.
inline Design timedDesign(std::string_view family, int devices, int microbatches, int f, int i, int w,
                          std::optional<Bytes> kept = 1000)
{
    DesignRequest request = requestFor(family, devices, microbatches);
    request.forward = f * 1'000'000;
    request.inputGrad = i * 1'000'000;
    request.weightGrad = w * 1'000'000;
    request.saved = 1000;
    request.savedForWeightGrad = kept;
    return makeDesign(request);
}

/// A preset model on four H200.
inline Design presetDesign(const char* model = "llama-3-8b")
{
    const PresetLibrary presets;
    NewDesign choice;
    choice.workload = presets.workload(model);
    choice.cluster = presets.cluster("h200-node", 4);
    return designFromModel(choice);
}

} // namespace pipewright::test
