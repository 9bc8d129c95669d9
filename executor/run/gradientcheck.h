// SPDX-License-Identifier: GPL-3.0-or-later
// Are the gradients of a pipelined step those of plain training? Runs the sequential reference with the
// order of accumulation that the Program's instruction lists have, and compares every gradient.
#pragma once

#include "executor/run/run.h"
#include "executor/training/sequential.h"
#include "executor/training/trainingwork.h"

namespace pipewright {

/// Per replica and stage, the order of its I (or B) and of its W (or B) blocks on its device's instruction list.
AccumulationOrder accumulationOrder(const Program& program);

/// Of every replica, relative to the reference's value; bit-equal means every float has the same bits.
GradientCheck compareGradients(const TrainingWork& work, const SequentialTrainer& reference);

} // namespace pipewright
