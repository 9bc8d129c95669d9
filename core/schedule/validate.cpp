// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/validate.h"

#include "core/schedule/weightinputs.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::size_t shownAtMost = 32;

void checkPins(const Schedule& schedule, const OrderGraph& graph, Diagnostics& diagnostics)
{
    for (const Pin& pin : schedule.pins) {
        const Block& b = pin.block;
        const bool known = b.stage >= 0 && b.stage < schedule.stages() && b.microbatch >= 0
                           && b.microbatch < schedule.microbatches && isPass(b.op)
                           && b.replica == schedule.replicaOf(b.microbatch);
        if (!known || graph.indexOf(b.op, b.stage, b.microbatch) == noBlock)
            diagnostics.push_back({Severity::Error, fmt::format("schedule.pins, {}", toString(b)),
                                   "a block is pinned that is not placed", "place the block or remove the pin"});
        if (pin.earliestStart < 0)
            diagnostics.push_back({Severity::Error, fmt::format("schedule.pins, {}", toString(b)),
                                   "the earliest start is negative", "use a time from 0 on"});
    }
}

} // namespace

Diagnostics worstFirst(Diagnostics diagnostics)
{
    std::stable_sort(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& a, const Diagnostic& b) { return a.severity > b.severity; });
    if (diagnostics.size() > shownAtMost) {
        const std::size_t more = diagnostics.size() - shownAtMost;
        diagnostics.resize(shownAtMost);
        diagnostics.push_back({Severity::Note, {}, fmt::format("{} more like these", more), {}});
    }
    return diagnostics;
}

Diagnostics validate(const Schedule& schedule, std::span<const SkipConnection> skips)
{
    Diagnostics diagnostics;
    OrderGraph graph(schedule, skips, false, diagnostics);
    if (!hasErrors(diagnostics)) {
        const WeightPlan weights = planWeights(schedule, graph, false, diagnostics);
        if (!hasErrors(diagnostics))
            addWeightInputs(graph, weights, schedule);
    }
    if (!hasErrors(diagnostics)) {
        checkPins(schedule, graph, diagnostics);
        const Diagnostics stuck = runOrder(graph).stuck;
        diagnostics.insert(diagnostics.end(), stuck.begin(), stuck.end());
    }
    return worstFirst(std::move(diagnostics));
}

} // namespace pipewright
