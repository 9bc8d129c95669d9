// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings of runs whose costs are known.
#pragma once

#include "traces/store/recording.h"

#include <algorithm>
#include <functional>
#include <string>

namespace pipewright::test {

/// A trace of `design` whose steps ran exactly as the costs that `costsOfStep` gives for each of them.
inline std::string recordedRun(const std::string& path, const Design& design, int steps,
                               const std::function<Costs(int)>& costsOfStep, int percentWaited = -1)
{
    TraceWriter writer(path, design, predict(design).program, smallHeader());
    Nanoseconds clock = 5'000;
    for (int step = 0; step < steps; ++step) {
        Design real = design;
        real.costs = costsOfStep(step);
        const Program program = predict(design).program;
        // The real costs on the recorded program: same tasks, same ids.
        Timeline timeline;
        Evaluator(program, real.costs).evaluate(timeline);
        const Nanoseconds end = *std::max_element(timeline.end.begin(), timeline.end.end());
        writer.append(recordsOf(program, timeline, step, clock));
        writer.append(StepRecord{step, clock, clock + end, 0, percentWaited < 0 ? -1 : end * percentWaited / 100});
        clock += end + 1'000;
    }
    writer.finish({0, 0}, 0, "{}");
    return path;
}

inline Costs realCosts(const Design& design)
{
    Costs costs = design.costs;
    for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
        StageCosts& c = costs.stages[stage];
        const auto extra = static_cast<Nanoseconds>(stage) * 100'000;
        c.forward = 1'300'000 + extra;
        c.inputGrad = 1'700'000 + extra;
        c.weightGrad = 900'000 + extra;
        c.backward = 2'500'000 + extra;
        c.update = 40'000;
    }
    costs.link.latency = 230'000;
    return costs;
}

} // namespace pipewright::test
