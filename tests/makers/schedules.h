// SPDX-License-Identifier: GPL-3.0-or-later
// Schedules for tests, written the way a person would say them.
#pragma once

#include "core/design/costs.h"
#include "core/families/family.h"
#include "core/schedule/schedule.h"

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace pipewright::test {

inline Block block(const std::string& text)
{
    const auto parsed = parseBlock(text);
    if (!parsed)
        throw std::logic_error("not a block: " + text);
    return *parsed;
}

/// One text per device, blocks separated by blanks: {"F0.0 B0.0", "F1.0 B1.0"}.
inline Schedule schedule(int microbatches, std::vector<int> deviceOfStage, const std::vector<std::string>& lanes,
                         BackwardStyle backward = BackwardStyle::Full)
{
    Schedule s;
    s.family = "custom";
    s.microbatches = microbatches;
    s.deviceOfStage = std::move(deviceOfStage);
    s.backward = backward;
    for (const std::string& lane : lanes) {
        std::vector<Block>& blocks = s.order.emplace_back();
        std::istringstream words(lane);
        for (std::string word; words >> word;)
            blocks.push_back(block(word));
    }
    return s;
}

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

/// The parameters nearest above these that the family takes: two directions need even numbers, DualPipe at
/// least as many microbatches as stages, interleaving whole groups.
inline FamilyParameters possibleParameters(const Family& family, int devices, int microbatches)
{
    FamilyParameters parameters;
    parameters.devices = devices;
    for (int extra = 0;; ++extra) {
        parameters.microbatches = microbatches + extra;
        if (!hasErrors(family.check(parameters)))
            return parameters;
        if (extra > 4 * parameters.devices) {
            ++parameters.devices;
            extra = -1;
        }
    }
}

} // namespace pipewright::test
