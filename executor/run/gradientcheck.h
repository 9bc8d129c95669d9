// SPDX-License-Identifier: GPL-3.0-or-later
// Are the gradients of a pipelined step those of plain training? Runs the sequential reference with the
// order of accumulation that the Program's instruction lists have, and compares every gradient.
#pragma once

#include "executor/run/run.h"
#include "executor/training/sequential.h"
#include "executor/training/trainingwork.h"

#include <string_view>

namespace pipewright {

/// Per replica and stage, the order of its I (or B) and of its W (or B) blocks on its device's instruction list.
AccumulationOrder accumulationOrder(const Program& program);

/// Tensor by tensor, in every replica: the norm of the difference by that of the reference's gradient, since single
/// elements may be nearly zero by cancellation. Bit-equal means every float has the same bits.
GradientCheck compareGradients(const TrainingWork& work, const SequentialTrainer& reference, double bound);

/// One tensor more. A NaN is as wrong as it can be, and so is anything where the reference is zero throughout.
void addTensor(GradientCheck& check, std::string_view name, std::span<const float> ours, std::span<const float> theirs);

} // namespace pipewright
