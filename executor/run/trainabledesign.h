// SPDX-License-Identifier: GPL-3.0-or-later
// A design as a training run uses it.
#pragma once

#include "core/design/design.h"
#include "core/program/program.h"

namespace pipewright {

/// The design with the bytes and shared parameters of its own workload. Throws Error, with the remedy, when its model
/// cannot be trained.
Design trainableDesign(const Design& design);

/// The same model with this attention memory; a classifier has no attention and stays as it is.
Workload withAttention(const Workload& workload, AttentionMemory memory);

/// The same model; if it is stored in bf16, `widened` says whether it is computed in fp32 copies.
Workload withWidened(const Workload& workload, bool widened);

/// The number of microbatches over which an update's gradient is averaged.
int microbatchesPerUpdate(const Program& program);

} // namespace pipewright
