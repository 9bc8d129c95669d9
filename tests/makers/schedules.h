// SPDX-License-Identifier: GPL-3.0-or-later
// Schedules for tests: written out block by block, or of a published family.
#pragma once

#include "core/families/family.h"
#include "core/schedule/schedule.h"

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
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

inline FamilyParameters sized(int devices, int microbatches)
{
    FamilyParameters parameters;
    parameters.devices = devices;
    parameters.microbatches = microbatches;
    return parameters;
}

/// These parameters, raised to the next values that the family accepts: two directions need even numbers, DualPipe at
/// least as many microbatches as stages, interleaving whole groups.
inline FamilyParameters possibleParameters(const Family& family, int devices, int microbatches)
{
    for (int extra = 0;; ++extra) {
        const FamilyParameters parameters = sized(devices, microbatches + extra);
        if (!hasErrors(family.check(parameters)))
            return parameters;
        if (extra > 4 * devices) {
            ++devices;
            extra = -1;
        }
    }
}

/// As many devices and microbatches as given; throws where the family does not take them.
inline Schedule familySchedule(std::string_view family, int devices, int microbatches)
{
    return makeSchedule(family, sized(devices, microbatches));
}

/// As many devices and microbatches as given, or a few more where the family asks for them.
inline Schedule possibleSchedule(std::string_view family, int devices, int microbatches)
{
    return makeSchedule(family, possibleParameters(*findFamily(family), devices, microbatches));
}

} // namespace pipewright::test
