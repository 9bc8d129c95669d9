// SPDX-License-Identifier: GPL-3.0-or-later
// Converts times and bytes of the parameters into the units that the searching families count in. O(stages).
#include "core/families/searchinputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace pipewright {

namespace {

/// Rounded down, but 1.15 x 20 is 23 although 1.15 is a little less in binary.
std::int64_t wholeUnits(double value)
{
    return static_cast<std::int64_t>(std::floor(std::min(value * (1 + 1e-12), 9e15)));
}

} // namespace

std::vector<StageTimes> passTimes(const FamilyParameters& parameters, int chunks)
{
    if (!parameters.stageTimes.empty())
        return parameters.stageTimes;
    return std::vector<StageTimes>(
        static_cast<std::size_t>(parameters.devices) * static_cast<std::size_t>(chunks),
        {parameters.forward / chunks, parameters.inputGrad / chunks, parameters.weightGrad / chunks});
}

ActivationSteps::ActivationSteps(const FamilyParameters& parameters, int chunks)
{
    forward = parameters.saved > 0 ? parameters.saved : 37;
    weightGrad = parameters.saved > 0 ? -parameters.savedForWeightGrad : -16;
    inputGrad = -forward - weightGrad;
    limit =
        wholeUnits(parameters.memoryLimit.value_or(1.0) * parameters.devices * chunks * static_cast<double>(forward));
}

Diagnostics checkSearchInputs(const FamilyParameters& parameters, int chunks, double leastMicrobatches)
{
    Diagnostics diagnostics;
    const auto bad = [&](std::string where, std::string what, std::string hint) {
        diagnostics.push_back({Severity::Error, std::move(where), std::move(what), std::move(hint)});
    };
    const std::size_t stages = static_cast<std::size_t>(parameters.devices) * static_cast<std::size_t>(chunks);
    if (!parameters.stageTimes.empty() && parameters.stageTimes.size() != stages)
        bad("times", fmt::format("times of {} stages for a schedule of {}", parameters.stageTimes.size(), stages),
            "give one entry per stage, or none");
    for (const StageTimes& t : parameters.stageTimes)
        if (std::min({t.forward, t.inputGrad, t.weightGrad}) < 0) {
            bad("times", "a negative time", "use 0 or more");
            break;
        }
    if (parameters.saved < 0 || parameters.savedForWeightGrad < 0 || parameters.savedForWeightGrad > parameters.saved)
        bad("--saved-for-weight-grad",
            fmt::format("{} bytes of {} saved", parameters.savedForWeightGrad, parameters.saved),
            "use 0 to all that is saved");
    const double microbatches = parameters.memoryLimit.value_or(1.0) * parameters.devices;
    if (microbatches * (1 + 1e-12) < leastMicrobatches)
        bad("--memory-limit",
            fmt::format("{}x holds {:.2f} microbatches on a device", parameters.memoryLimit.value_or(1.0),
                        microbatches),
            fmt::format("use at least {:.4f}x", std::ceil(leastMicrobatches / parameters.devices * 1e4) / 1e4));
    return diagnostics;
}

int chunkLimit(const FamilyParameters& parameters, int chunks, int most)
{
    if (!parameters.memoryLimit)
        return most;
    return static_cast<int>(
        std::min<std::int64_t>(most, wholeUnits(*parameters.memoryLimit * parameters.devices * chunks)));
}

} // namespace pipewright
