// SPDX-License-Identifier: GPL-3.0-or-later
// Are the gradients of a pipelined step those of plain training? Runs the schedule through the reference and compares
// every gradient or, where weights are updated within the step, every parameter.
#pragma once

#include "core/design/design.h"
#include "executor/run/run.h"
#include "executor/training/referencetrainer.h"
#include "executor/training/trainingwork.h"

#include <string_view>

namespace pipewright {

/// The state in which the last of `steps` steps begins. The values must be on the host.
std::vector<StageStart> startOfLastStep(const TrainingWork& work, const Program& program, int steps);

/// A step to be repeated by a reference: the last of a run.
struct LastStep {
    const Workload& workload;
    const Design& design;
    const Program& program;
    const OptimizerSettings& optimizer;
    const TrainingData& data;
    int number;
    const std::vector<StageStart>& start; ///< per stage
};
/// Compares with the reference: the gradients of every replica, tensor by tensor, or, where weights are updated within
/// the step, the parameters, whose errors are relative to what the step changed. Bit-equal means that every float has
/// the same bits. If the run kept its choices of experts, the reference follows them and counts the choices
/// that it would have made differently.
GradientCheck checkLastStep(const LastStep& last, const TrainingWork& work, double bound);

/// `check` with the outcome of following the run's choices of experts.
GradientCheck withRouting(GradientCheck check, const RoutingCheck& followed);

/// Why a run's last step was compared with nothing.
GradientCheck notCompared(const RunResult& result, bool trains, bool versioned);

/// Adds an error for each reason why the check does not hold, or a note if rounding alone changed choices of experts.
void noteOfGradients(const GradientCheck& check, Diagnostics& notes);

/// For stages that are updated within the step: checks which weight version every block really read. Throws Error if
/// one differs from the compiled version.
void checkReads(const TrainingWork& work, const Program& program, Diagnostics& notes);

/// Adds one tensor to the check. The error is infinite for a NaN, and for any difference from a reference that is all
/// zeros.
void addTensor(GradientCheck& check, std::string_view name, std::span<const float> ours, std::span<const float> theirs);

} // namespace pipewright
