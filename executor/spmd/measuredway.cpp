// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/spmd/measuredway.h"

#include "core/base/median.h"

namespace pipewright::spmd {

double MeasuredWay::median() const
{
    return medianOf(stepSeconds);
}

MeasuredWay measureWay(const TensorGraph& graph, const Machine& machine, std::string name, const SpmdProgram& program,
                       const Ratios& ratios, const LeafValues& leaves, int steps, Backend* backend)
{
    SpmdRunOptions options;
    options.emulateSpeed = !backend;
    options.warmUp = backend != nullptr; // memory, libraries and connections come with the first step
    options.backend = backend;
    options.steps = steps;
    const Theory theory(graph, machine, ratios);
    return {std::move(name), costOf(program, machine, ratios),
            runProgram(theory, program, leaves, options).stepSeconds};
}

std::vector<MeasuredWay> measureWays(const TensorGraph& graph, const Machine& machine, const ShardPlan& plan,
                                     const std::vector<Alternative>& others, const LeafValues& leaves, int steps,
                                     Backend* backend)
{
    std::vector<MeasuredWay> ways{
        measureWay(graph, machine, "plan", plan.program, plan.ratios, leaves, steps, backend)};
    for (const Alternative& other : others)
        ways.push_back(measureWay(graph, machine, other.name, other.program, other.ratios, leaves, steps, backend));
    return ways;
}

} // namespace pipewright::spmd
