// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/calibration.h"

#include "core/base/diagnostic.h"
#include "core/program/compile.h"
#include "traces/handoff.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pipewright {

namespace {

/// The finished steps whose length lies in the middle half, the warm-up step left out when there are others.
std::vector<int> centralSteps(const TraceReader& trace, const std::string& traceName)
{
    std::vector<StepRecord> steps = trace.steps();
    if (steps.empty())
        throw Error(traceName, "the trace has no finished step", "let the run finish at least one step");
    if (steps.size() > 1)
        steps.erase(steps.begin());
    std::stable_sort(steps.begin(), steps.end(), [](const StepRecord& a, const StepRecord& b) {
        return a.end - a.start < b.end - b.start;
    });
    const std::size_t margin = steps.size() / 4;
    std::vector<int> central;
    for (std::size_t i = margin; i < steps.size() - margin; ++i)
        central.push_back(steps[i].step);
    return central;
}

struct Mean {
    double sum = 0;
    std::int64_t count = 0;
    void add(Nanoseconds value)
    {
        sum += static_cast<double>(value);
        ++count;
    }
    void assignTo(Nanoseconds& cost) const
    {
        if (count > 0)
            cost = std::llround(sum / static_cast<double>(count));
    }
};

struct StageMeans {
    std::array<Mean, opCount> ofOp;
};

} // namespace

Design calibrate(const Design& design, const TraceReader& trace, const std::string& traceName)
{
    const Program program = compile(design.schedule, design.costs, design.dataflow);
    std::vector<StageMeans> stages(static_cast<std::size_t>(program.stages));
    Mean reduce;
    Handoffs handoffs(program);
    for (const int step : centralSteps(trace, traceName)) {
        const Timeline timeline = trace.timeline(program, step);
        for (TaskId id = 0; id < program.tasks.size(); ++id) {
            const Task& task = program.tasks[id];
            if (timeline.start[id] == notRun || task.kind == TaskKind::Transfer)
                continue;
            const Nanoseconds duration = timeline.end[id] - timeline.start[id];
            if (task.kind == TaskKind::Reduce)
                reduce.add(duration);
            else
                stages[static_cast<std::size_t>(task.stage)].ofOp[static_cast<std::size_t>(task.op)].add(duration);
        }
        handoffs.add(timeline);
    }

    Design calibrated = design;
    Costs& costs = calibrated.costs;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        const auto mean = [&](Op op) -> const Mean& { return stages[stage].ofOp[static_cast<std::size_t>(op)]; };
        StageCosts& cost = costs.stages[stage];
        mean(Op::F).assignTo(cost.forward);
        mean(Op::B).assignTo(cost.backward);
        mean(Op::I).assignTo(cost.inputGrad);
        mean(Op::W).assignTo(cost.weightGrad);
        mean(Op::U).assignTo(cost.update);
        mean(Op::R).assignTo(cost.recompute);
        if (mean(Op::B).count == 0 && mean(Op::I).count > 0 && mean(Op::W).count > 0)
            cost.backward = cost.inputGrad + cost.weightGrad;
    }
    reduce.assignTo(costs.reduce);
    handoffs.fit(costs);
    costs.source = "measured: " + traceName;
    return calibrated;
}

} // namespace pipewright
