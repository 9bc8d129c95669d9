// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/policydesigns.h"

#include "core/predict/stability.h"
#include "core/program/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipewright {

std::span<const ComparablePolicy> comparablePolicies()
{
    static constexpr std::array<ComparablePolicy, 9> policies{{
        {"1f1b", "1F1B with flush", false, true},
        {"async-1f1b", "vanilla", true, false},
        {"pipedream", "PipeDream", true, false},
        {"pipedream-2bw", "PipeDream-2BW", false, false},
        {"spectrain", "SpecTrain", true, false},
        {"xpipe", "XPipe", false, false},
        {"pipeoptim", "PipeOptim", true, false},
        {"cdp-v1", "CDP-v1", false, false},
        {"cdp-v2", "CDP-v2", false, false},
    }};
    return policies;
}

Design policyDesign(const ComparablePolicy& policy, const PolicyComparison& comparison)
{
    const int stages = comparison.stages;
    if (stages < 1 || comparison.rows < stages || comparison.rows % stages != 0)
        throw Error("rows", fmt::format("{} rows per update for {} stages", comparison.rows, stages),
                    "use a multiple of the stages: some policies take them in as many microbatches");
    DesignRequest request;
    request.family = policy.family;
    request.name = policy.title;
    request.devices = stages;
    request.model = comparison.model;
    request.microbatchSize = policy.single ? comparison.rows : comparison.rows / stages;
    // Long enough to fill the pipeline and to use every version.
    request.microbatches = policy.flushes ? stages : policy.single ? 3 * stages : 4 * stages;
    if (!policy.flushes)
        request.optimizer = comparison.optimizer;
    if (const Family* family = findFamily(policy.family); family != nullptr && family->accumulates && !policy.single)
        request.accumulate = stages;
    return makeDesign(request);
}

std::vector<StageLesson> lessonOf(const Design& design, double momentum)
{
    std::vector<StageLesson> lessons;
    for (const StageWeights& stage : weightReport(compile(design.schedule, design.costs, design.dataflow)))
        lessons.push_back({stage,
                           largestStableRate(momentum, stage.staleness, std::min(stage.forwardSteps, stage.staleness)),
                           largestStableRate(momentum, stage.staleness, 0)});
    return lessons;
}

double momentumWherePredictionHelps(int staleness)
{
    if (staleness == 0)
        return 0;
    const auto helps = [&](double momentum) {
        return largestStableRate(momentum, staleness, staleness) > largestStableRate(momentum, staleness, 0);
    };
    double low = 0, high = 0.999;
    if (helps(low))
        return 0;
    if (!helps(high))
        return 1;
    while (high - low > 1e-4) {
        const double middle = (low + high) / 2;
        (helps(middle) ? high : low) = middle;
    }
    return high;
}

} // namespace pipewright
