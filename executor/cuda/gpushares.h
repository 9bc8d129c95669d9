// SPDX-License-Identifier: GPL-3.0-or-later
// Which GPU of this machine each pipeline device gets, and how many of its multiprocessors; and why a design's mapping
// is impossible here. Needs only the list of GPUs, so it is known before anything runs.
#pragma once

#include "core/base/diagnostic.h"
#include "core/cluster/cluster.h"
#include "executor/cuda/table.h"

#include <vector>

namespace pipewright {

/// Why the mapping `wanted` of `devices` devices is impossible: one diagnostic per device or GPU, with the remedy; none
/// when there is no mapping. Slices that fit exactly but not after rounding up to the architecture's slice sizes are a
/// warning only, since the driver decides.
Diagnostics whyNotPlaced(const std::vector<GpuShare>& wanted, int devices,
                         const std::vector<PipewrightCudaDevice>& gpus);

/// The cluster's own mapping if it has one; else device d on GPU d modulo the number of GPUs, with equal slices where
/// several devices share a GPU. Throws Error for a mapping that this machine cannot have.
std::vector<GpuShare> gpuSharesFor(const std::vector<GpuShare>& wanted, int devices,
                                   const std::vector<PipewrightCudaDevice>& gpus);

} // namespace pipewright
