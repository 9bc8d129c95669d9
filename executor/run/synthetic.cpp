// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/synthetic.h"

#include "core/base/diagnostic.h"
#include "core/base/units.h"

#include <cmath>
#include <fmt/format.h>

namespace pipewright {

namespace {

// The same limits as for files and options: 100 days and one exbibyte.
constexpr Nanoseconds longestTime = 8'640'000'000'000'000;
constexpr Bytes largestSize = Bytes{1} << 60;

std::int64_t scaled(std::int64_t value, double by, std::int64_t most)
{
    const double result = static_cast<double>(value) * by;
    if (!(result <= static_cast<double>(most)))
        throw Error("synthetic",
                    most == longestTime ? fmt::format("a time scale of {:g} makes {} more than {}", by,
                                                      formatDuration(value), formatDuration(most))
                                        : fmt::format("a memory scale of {:g} makes {} more than {}", by,
                                                      formatSize(value), formatSize(most)),
                    "give a smaller scale");
    return std::llround(result);
}

LinkCosts scaledLink(LinkCosts link, const SyntheticScale& scale)
{
    link.latency = scaled(link.latency, scale.time, longestTime);
    if (link.bytesPerSecond == 0) // unlimited bandwidth: only latency counts
        return link;
    link.bytesPerSecond *= scale.memory / scale.time;
    if (!(link.bytesPerSecond > 0) || !std::isfinite(link.bytesPerSecond))
        throw Error("synthetic",
                    fmt::format("a time scale of {:g} and a memory scale of {:g} leave no rate of a link", scale.time,
                                scale.memory),
                    "give scales that are nearer to each other");
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
    const auto scaleAll = [](std::initializer_list<std::int64_t*> values, double by, std::int64_t most) {
        for (std::int64_t* value : values)
            *value = scaled(*value, by, most);
    };
    Costs result = costs;
    for (StageCosts& stage : result.stages) {
        for (const Op op : allOps)
            scaleAll({&(stage.*timeField(op))}, scale.time, longestTime);
        scaleAll({&stage.reduceGradients, &stage.gather}, scale.time, longestTime);
        stage.fitParts();
        scaleAll({&stage.savedUntilInputGrad,
                  &stage.savedUntilWeightGrad,
                  &stage.savedFromInputGrad,
                  &stage.sparedByBackward,
                  &stage.recomputedUntilInputGrad,
                  &stage.recomputedUntilWeightGrad,
                  &stage.workspaceRecompute,
                  &stage.output,
                  &stage.sequenceGradient,
                  &stage.workspaceForward,
                  &stage.workspaceInputGrad,
                  &stage.workspaceWeightGrad,
                  &stage.workspaceBackward,
                  &stage.parameters,
                  &stage.gradients,
                  &stage.optimizerState,
                  &stage.framework,
                  &stage.narrowWeights,
                  &stage.gatheredParameters,
                  &stage.wholeGradients},
                 scale.memory, largestSize);
    }
    result.link = scaledLink(result.link, scale);
    for (auto& [pair, link] : result.linkOfPair)
        link = scaledLink(link, scale);
    for (NodeLinks::Node& node : result.nodeLinks.nodes) {
        node.network = scaledLink(node.network, scale);
        node.beyondSwitch = scaledLink(node.beyondSwitch, scale);
    }
    if (result.hostLink)
        result.hostLink = scaledLink(*result.hostLink, scale);
    scaleAll({&result.reduce}, scale.time, longestTime);
    for (HostGaps& gaps : result.hostGaps)
        for (Nanoseconds& gap : gaps.before)
            scaleAll({&gap}, scale.time, longestTime);
    result.source = fmt::format("{}; times x {:g}, bytes x {:g}", costs.source, scale.time, scale.memory);
    return result;
}

Dataflow scaledDataflow(const Dataflow& dataflow, const SyntheticScale& scale)
{
    Dataflow result = dataflow;
    for (SharedParameter& shared : result.shared)
        for (Bytes* const bytes : {&shared.bytes, &shared.values})
            *bytes = scaled(*bytes, scale.memory, largestSize);
    for (SkipConnection& skip : result.skips)
        skip.bytes = scaled(skip.bytes, scale.memory, largestSize);
    return result;
}

} // namespace pipewright
