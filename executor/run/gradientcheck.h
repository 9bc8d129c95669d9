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

/// Tensor by tensor, in every replica: the norm of the difference by that of the reference's gradient, since single
/// elements may be nearly zero by cancellation. Bit-equal means every float has the same bits.
GradientCheck compareGradients(const TrainingWork& work, const SequentialTrainer& reference, double bound);

/// The parameters after a step, tensor by tensor; errors are of what the step changed, from `start` on.
GradientCheck compareParameters(const TrainingWork& work, const LaggedTrainer& reference,
                                const std::vector<StageStart>& start, double bound);

/// Where the last of so many steps begins, once the values are on the host.
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
/// With the sequential run; where weights are updated amid the step, with the lagged one. Where the run kept which
/// experts tokens visit, they visit those in the reference too, and what it would have done otherwise is counted.
GradientCheck checkLastStep(const LastStep& last, const TrainingWork& work, double bound);

/// With what came of following the run's choices of experts.
GradientCheck withRouting(GradientCheck check, const RoutingCheck& followed);

/// Why a run's last step was compared with nothing.
GradientCheck notCompared(const RunResult& result, bool trains, bool versioned);

/// Of a check that does not hold: an error more. Of experts that only roundings decided: a note.
void noteOfGradients(const GradientCheck& check, Diagnostics& notes);

/// Where stages are updated amid the step: which version every block really read. Throws Error for another than the
/// compiled one.
void checkReads(const TrainingWork& work, const Program& program, Diagnostics& notes);

/// One tensor more. A NaN is as wrong as it can be, and so is anything where the reference is zero throughout.
void addTensor(GradientCheck& check, std::string_view name, std::span<const float> ours, std::span<const float> theirs);

} // namespace pipewright
