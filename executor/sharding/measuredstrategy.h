// SPDX-License-Identifier: GPL-3.0-or-later
// Measures the step time of a program, on the host's devices with emulated speed or on a backend's own, and compares it
// with the prediction: for the chosen program and for the common strategies that it should beat.
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
/// The plan first, with the name "plan", then the others.
std::vector<MeasuredStrategy> measureWays(const TensorGraph& graph, const Machine& machine, const ShardingPlan& plan,
                                          const std::vector<Alternative>& others, const LeafValues& leaves, int steps,
                                          Backend* backend = nullptr);

} // namespace pipewright::sharding
