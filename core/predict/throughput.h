// SPDX-License-Identifier: GPL-3.0-or-later
// Throughput of a step: tokens per second, model FLOPs utilization (MFU), and the bytes transferred between devices.
// O(layers), O(tasks).
#pragma once

#include "core/design/design.h"
#include "core/program/program.h"

namespace pipewright {

/// Tokens of all microbatches, and of all copies of the pipeline, of one step over the makespan; 0 when the design has
/// no workload.
double tokensPerSecond(const Design& design, Nanoseconds makespan);

/// Floating-point operations of the model for one step as published MFUs count them (arXiv 2104.04473, section 5.1;
/// arXiv 2204.02311, appendix B): attention as whole squares of scores, whatever the mask and however it is computed;
/// the backward twice the forward; recomputation left out. 0 without a workload.
double modelFlops(const Design& design);

/// modelFlops() divided by the FLOPs of the schedule's devices at peak rate during the makespan; 0 when the workload or
/// the rate of a device is not known.
double modelFlopsUtilization(const Design& design, Nanoseconds makespan);

/// Bytes of all transfers of one step.
Bytes transferBytes(const Program& program);

} // namespace pipewright
