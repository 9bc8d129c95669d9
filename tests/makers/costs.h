// SPDX-License-Identifier: GPL-3.0-or-later
// Costs for tests: equal ones for tests that count blocks, all different ones for tests that must notice a wrong stage.
#pragma once

#include "core/design/costs.h"
#include "core/families/family.h"
#include "core/schedule/schedule.h"

namespace pipewright::test {

/// F = I = W = 1 us, B = 2 us, no transfer time; every kind of buffer has a size of its own.
inline Costs unitCosts(int stages)
{
    DeviceWorth worth;
    worth.forward = worth.inputGrad = worth.weightGrad = 1000;
    Costs costs = uniformCosts(worth, stages, 1);
    for (StageCosts& stage : costs.stages) {
        stage.savedUntilInputGrad = 1000;
        stage.savedUntilWeightGrad = 300;
        stage.savedFromInputGrad = 70;
        stage.output = 16;
        stage.workspaceForward = 5;
        stage.workspaceInputGrad = 6;
        stage.workspaceWeightGrad = 7;
        stage.workspaceBackward = 9;
        stage.parameters = 100'000;
        stage.gradients = 100'000;
        stage.optimizerState = 200'000;
    }
    return costs;
}

/// Sizes and times that differ from stage to stage, so that nothing fits by accident.
inline Costs distinctCosts(int stages)
{
    Costs costs;
    for (int s = 0; s < stages; ++s) {
        StageCosts stage;
        stage.forward = 1000 + 100 * s;
        stage.inputGrad = 1300 + 70 * s;
        stage.weightGrad = 900 + 30 * s;
        stage.backward = stage.inputGrad + stage.weightGrad;
        stage.update = 500;
        stage.savedUntilInputGrad = 200 + 24 * s;
        stage.savedUntilWeightGrad = 120 + 8 * s;
        stage.savedFromInputGrad = 72;
        stage.output = 160;
        stage.workspaceForward = 40;
        stage.workspaceInputGrad = 300;
        stage.workspaceWeightGrad = 16;
        stage.workspaceBackward = 320;
        stage.parameters = 256;
        stage.gradients = 256;
        stage.optimizerState = 512;
        costs.stages.push_back(stage);
    }
    costs.link = {250, 1e9};
    costs.reduce = 700;
    return costs;
}

/// The time and memory of every device, divided evenly among the schedule's stages.
inline Costs evenCosts(const DeviceWorth& worth, const Schedule& schedule)
{
    return uniformCosts(worth, schedule.stages(), schedule.chunks());
}

/// The times that a family used to make its order.
inline DeviceWorth worthOf(const FamilyParameters& parameters)
{
    DeviceWorth worth;
    worth.forward = parameters.forward;
    worth.inputGrad = parameters.inputGrad;
    worth.weightGrad = parameters.weightGrad;
    worth.transfer = parameters.transfer;
    return worth;
}

} // namespace pipewright::test
