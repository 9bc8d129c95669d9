// SPDX-License-Identifier: GPL-3.0-or-later
// Small designs that the designer's tests start from: known order, round times, some bytes.
#pragma once

#include "core/design/design.h"
#include "core/families/family.h"

namespace pipewright::testing {

/// F 10 ms, I 10 ms, W 6 ms per stage, transfers 1 ms, 1 GiB saved per microbatch.
inline Design design(const char* family = "zb-h1", int devices = 4, int microbatches = 8)
{
    FamilyParameters parameters;
    parameters.devices = devices;
    parameters.microbatches = microbatches;
    Design design;
    design.name = family;
    design.schedule = makeSchedule(family, parameters);
    DeviceWorth worth;
    worth.forward = 10'000'000;
    worth.inputGrad = 10'000'000;
    worth.weightGrad = 6'000'000;
    worth.transfer = 1'000'000;
    worth.saved = Bytes{1} << 30;
    worth.savedForWeightGrad = Bytes{1} << 29;
    design.costs = uniformCosts(worth, design.schedule.stages(), design.schedule.chunks());
    design.cluster.devices.resize(static_cast<std::size_t>(devices));
    for (DeviceSpec& device : design.cluster.devices) {
        device.name = "H200";
        device.memory = Bytes{80} << 30;
    }
    return design;
}

} // namespace pipewright::testing
