// SPDX-License-Identifier: GPL-3.0-or-later
// What a step achieves and what it moves: tokens per second, the share of the devices' peak that the model's
// own arithmetic is (MFU), and the bytes that travel between devices. O(layers), O(tasks).
#pragma once

#include "core/design/design.h"
#include "core/program/program.h"

namespace pipewright {

/// Tokens of all microbatches, and of all copies of the pipeline, of one step over the makespan; 0 when the design has
/// no workload.
double tokensPerSecond(const Design& design, Nanoseconds makespan);

/// Floating-point operations of the model for one step, forward and backward, recomputation left out; 0 without
/// a workload.
double modelFlops(const Design& design);

/// modelFlops() over what the devices of the schedule could do in the makespan at their peak rates; 0 when the
/// workload or the rate of a device is not known.
double modelFlopsUtilization(const Design& design, Nanoseconds makespan);

/// Bytes of all transfers of one step.
Bytes transferBytes(const Program& program);

} // namespace pipewright
