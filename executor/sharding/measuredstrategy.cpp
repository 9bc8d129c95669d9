// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/measuredstrategy.h"

#include "core/base/median.h"

namespace pipewright::sharding {

double MeasuredStrategy::median() const
{
    return medianOf(stepSeconds);
}

MeasuredStrategy measureStrategy(const TensorGraph& graph, const Machine& machine, std::string name,
                                 const ShardingProgram& program, const Ratios& ratios, const LeafValues& leaves,
                                 int steps, Backend* backend)
{
    ShardingRunOptions options;
    options.emulateSpeed = !backend;
    options.warmUp = backend != nullptr; // the first step also sets up memory, libraries and connections
    options.backend = backend;
    options.steps = steps;
    const Theory theory(graph, machine, ratios);
    return {std::move(name), costOf(program, machine, ratios),
            runProgram(theory, program, leaves, options).stepSeconds};
}

std::vector<MeasuredStrategy> measureWays(const TensorGraph& graph, const Machine& machine, const ShardingPlan& plan,
                                          const std::vector<Alternative>& others, const LeafValues& leaves, int steps,
                                          Backend* backend)
{
    std::vector<MeasuredStrategy> ways{
        measureStrategy(graph, machine, "plan", plan.program, plan.ratios, leaves, steps, backend)};
    for (const Alternative& other : others)
        ways.push_back(
            measureStrategy(graph, machine, other.name, other.program, other.ratios, leaves, steps, backend));
    return ways;
}

} // namespace pipewright::sharding
