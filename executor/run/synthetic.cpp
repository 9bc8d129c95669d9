// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/synthetic.h"

#include "core/base/diagnostic.h"

#include <cmath>
#include <fmt/format.h>

namespace pipewright {

namespace {

LinkCosts scaledLink(LinkCosts link, const SyntheticScale& scale)
{
    link.latency = std::llround(static_cast<double>(link.latency) * scale.time);
    link.bytesPerSecond *= scale.memory / scale.time;
    return link;
}

void requirePositive(double value, const char* what)
{
    if (!(value > 0) || !std::isfinite(value))
        throw Error("synthetic", fmt::format("a {} scale of {}", what, value),
                    "give a number above 0, 1 changes nothing");
}

} // namespace

Costs scaledCosts(const Costs& costs, const SyntheticScale& scale)
{
    requirePositive(scale.time, "time");
    requirePositive(scale.memory, "memory");
    if (scale == SyntheticScale{})
        return costs;
    const auto scaleAll = [](std::initializer_list<std::int64_t*> values, double by) {
        for (std::int64_t* value : values)
            *value = std::llround(static_cast<double>(*value) * by);
    };
    Costs result = costs;
    for (StageCosts& stage : result.stages) {
        scaleAll(
            {&stage.forward, &stage.inputGrad, &stage.weightGrad, &stage.backward, &stage.update, &stage.recompute},
            scale.time);
        scaleAll({&stage.savedUntilInputGrad, &stage.savedUntilWeightGrad, &stage.savedFromInputGrad, &stage.output,
                  &stage.sequenceGradient, &stage.workspaceForward, &stage.workspaceInputGrad,
                  &stage.workspaceWeightGrad, &stage.workspaceBackward, &stage.parameters, &stage.gradients,
                  &stage.optimizerState},
                 scale.memory);
    }
    result.link = scaledLink(result.link, scale);
    for (auto& [pair, link] : result.linkOfPair)
        link = scaledLink(link, scale);
    scaleAll({&result.reduce}, scale.time);
    for (HostGaps& gaps : result.hostGaps)
        for (Nanoseconds& gap : gaps.before)
            scaleAll({&gap}, scale.time);
    result.source = fmt::format("{}; times x {:g}, bytes x {:g}", costs.source, scale.time, scale.memory);
    return result;
}

} // namespace pipewright
