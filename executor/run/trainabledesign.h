// SPDX-License-Identifier: GPL-3.0-or-later
// A design as a training run takes it.
#pragma once

#include "core/design/design.h"
#include "core/program/program.h"

namespace pipewright {

/// The bytes of the costs, and the shared parameters, of its own workload. Throws Error, with the remedy, when its
/// model cannot be trained.
Design trainableDesign(const Design& design);

/// The same model, whose attention keeps that; a classifier has none.
Workload withAttention(const Workload& workload, AttentionMemory memory);

/// The same model; where it is stored in bf16, computed in fp32 copies, or not.
Workload withWidened(const Workload& workload, bool widened);

/// Over how many microbatches an update's gradient is a mean.
int microbatchesPerUpdate(const Program& program);

} // namespace pipewright
