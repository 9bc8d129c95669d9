// SPDX-License-Identifier: GPL-3.0-or-later
// Are the gradients of a pipelined step those of plain training? Runs the schedule through the reference and compares
// every gradient or, where weights are updated within the step, every parameter.
#pragma once

#include "core/design/design.h"
#include "executor/run/run.h"
#include "executor/training/expertchoices.h"
#include "executor/training/referencetrainer.h"
#include "executor/training/trainingwork.h"

#include <memory>
#include <span>
#include <string_view>

namespace pipewright {

/// The comparison of a run's last step with a reference, which does that step again on one device.
class LastStepCheck {
public:
    virtual ~LastStepCheck() = default;
    /// Before the step, when the values of the work's kindsOfStart() are on the host.
    virtual void begin() = 0;
    /// After it, when those of kindOfResult() are, and the choices of experts.
    virtual GradientCheck compare() = 0;
};

/// What a reference needs besides the work, of which it keeps references.
struct LastStep {
    const Design& design;
    const Program& program; ///< that the work runs
    const OptimizerSettings& optimizer;
    const TrainingData& data;
    int number;
    double bound; ///< GradientCheck::within
};

/// On single devices: compares the gradients of every replica, tensor by tensor, or, where weights are updated within
/// the step, the parameters, whose errors are relative to what the step changed. Bit-equal means that every float has
/// the same bits. If the run kept its choices of experts, the reference follows them and counts the choices that it
/// would have made differently.
std::unique_ptr<LastStepCheck> checkOf(const TrainingWork& work, const LastStep& last);

/// What a reference of single devices begins the last step with, where weights are updated within the step: the
/// parameters and the optimizer's state, by stage.
std::vector<StageStart> startOfStages(const LastStep& last, StageValues parameters, StageValues state);
/// Does that step from there, and compares what it changed with `found`, the parameters after it.
GradientCheck checkUpdates(const LastStep& last, const std::vector<StageStart>& start, const StageValues& found);

/// `check` with the outcome of following the run's choices of experts.
GradientCheck withRouting(GradientCheck check, const RoutingCheck& followed);

/// Why a run's last step was compared with nothing.
GradientCheck notCompared(const RunResult& result, bool trains, bool versioned);

/// Adds an error for each reason why the check does not hold, or a note if rounding alone changed choices of experts.
void noteOfGradients(const GradientCheck& check, Diagnostics& notes);

/// Checks which weight version every block really read. Throws Error if one differs from the compiled version.
void checkReads(const VersionedWeights& versions, const Program& program, Diagnostics& notes);

/// Adds one tensor to the check. The error is infinite for a NaN, and for any difference from a reference that is all
/// zeros.
void addTensor(GradientCheck& check, std::string_view name, std::span<const float> ours, std::span<const float> theirs);

} // namespace pipewright
