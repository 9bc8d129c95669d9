// SPDX-License-Identifier: GPL-3.0-or-later
// Schedules with update blocks, compiled and predicted in ticks of 1 ms.
#pragma once

#include "core/families/workers.h"
#include "core/predict/evaluator.h"
#include "core/program/compile.h"
#include "makers/costs.h"
#include "makers/schedules.h"

#include <map>
#include <string>

namespace pipewright::test {

/// F = B = 1 ms, as the published timetables have it.
inline Costs tickCosts(int stages)
{
    Costs costs = unitCosts(stages);
    for (StageCosts& stage : costs.stages) {
        stage.forward = stage.backward = 1'000'000;
        stage.inputGrad = stage.weightGrad = 500'000;
        stage.parameters = stage.gradients = 1000;
    }
    return costs;
}

inline FamilyParameters parametersOf(int devices, int microbatches)
{
    FamilyParameters p = sized(devices, microbatches);
    p.inputGrad = p.weightGrad = 500'000;
    return p;
}

inline FamilyParameters workersOn(WorkerLayout layout, int n, int steps, bool cyclic)
{
    FamilyParameters p = parametersOf(devicesOf(layout, n, cyclic), n * steps);
    p.layout = layout;
    p.workers = n;
    if (layout == WorkerLayout::Workers || layout == WorkerLayout::Sharded)
        for (Nanoseconds* time : {&p.forward, &p.inputGrad, &p.weightGrad})
            *time *= n; // for all layers of a device
    return p;
}

struct Compiled {
    explicit Compiled(Schedule s)
        : schedule(std::move(s)), costs(tickCosts(schedule.stages())), program(compile(schedule, costs))
    {
        Evaluator(program, costs).evaluate(timeline);
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].kind == TaskKind::Compute || (program.tasks[t].kind == TaskKind::Update))
                taskOf[program.tasks[t].block()] = t;
    }
    int tick(const std::string& block) const
    {
        return static_cast<int>(timeline.start[taskOf.at(test::block(block))] / 1'000'000);
    }
    int tick(Op op, int stage, int microbatch) const
    {
        const Nanoseconds start = timeline.start[taskOf.at(Block{op, stage, microbatch})];
        return start % 1'000'000 == 0 ? static_cast<int>(start / 1'000'000) : -1;
    }
    WeightUse use(Op op, int stage, int microbatch) const
    {
        return program.weights[taskOf.at(Block{op, stage, microbatch})];
    }

    Schedule schedule;
    Costs costs;
    Program program;
    Timeline timeline;
    std::map<Block, TaskId> taskOf;
};

inline Compiled family(std::string_view name, const FamilyParameters& p)
{
    return Compiled(makeSchedule(name, p));
}

} // namespace pipewright::test
