// SPDX-License-Identifier: GPL-3.0-or-later
// Are the gradients of a pipelined step those of plain training? Runs the sequential reference with the
// order of accumulation that the Program's instruction lists have, and compares every gradient.
#pragma once

#include "core/design/design.h"
#include "executor/run/run.h"
#include "executor/training/laggedtrainer.h"
#include "executor/training/sequential.h"
#include "executor/training/trainingwork.h"

#include <string_view>

namespace pipewright {

/// Per replica and stage, the order of its I (or B) and of its W (or B) blocks on its device's instruction list.
AccumulationOrder accumulationOrder(const Program& program);

/// For each tensor of every replica: the norm of the difference divided by the norm of the reference's gradient, since
/// single elements may be nearly zero by cancellation. Bit-equal means every float has the same bits.
GradientCheck compareGradients(const TrainingWork& work, const SequentialTrainer& reference, double bound);

/// Compares the parameters after a step, tensor by tensor. Errors are relative to what the step changed from `start`.
GradientCheck compareParameters(const TrainingWork& work, const LaggedTrainer& reference,
                                const std::vector<StageStart>& start, double bound);

/// The state in which the last of `steps` steps begins. The values must be on the host.
std::vector<StageStart> startOfLastStep(const TrainingWork& work, const Program& program, int steps);

/// A step to be repeated by a reference: the last of a run.
struct LastStep {
    const Workload& workload;
    const Design& design;
    const Program& program;
    const OptimizerSettings& optimizer;
    const TrainingData& data;
    std::uint64_t seed;
    int number;
    const std::vector<StageStart>& start; ///< per stage
};
/// Compares with the sequential run or, where weights are updated within the step, with the lagged run. If the run kept
/// its choices of experts, the reference follows them and counts the choices that it would have made differently.
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
