// SPDX-License-Identifier: GPL-3.0-or-later
// How long a step of a program takes, on the host's devices of emulated speed or on a backend's own, beside what was
// predicted: of the program that was chosen, and of the common ways that it is to beat.
#pragma once

#include "core/sharding/shardingplan.h"
#include "executor/sharding/shardingrun.h"

#include <string>
#include <vector>

namespace pipewright::sharding {

struct MeasuredStrategy {
    std::string name;
    double predicted = 0; ///< seconds a step
    std::vector<double> stepSeconds;
    double median() const;
    double error() const { return predicted / median() - 1; } ///< relative to what was measured
};

/// Runs `steps` timed steps without checks; `backend` null: the host's, emulated. Throws Error as runProgram does.
MeasuredStrategy measureStrategy(const TensorGraph& graph, const Machine& machine, std::string name,
                                 const ShardingProgram& program, const Ratios& ratios, const LeafValues& leaves,
                                 int steps, Backend* backend = nullptr);
/// The plan first, by the name of "plan", then the others.
std::vector<MeasuredStrategy> measureWays(const TensorGraph& graph, const Machine& machine, const ShardingPlan& plan,
                                          const std::vector<Alternative>& others, const LeafValues& leaves, int steps,
                                          Backend* backend = nullptr);

} // namespace pipewright::sharding
