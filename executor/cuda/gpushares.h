// SPDX-License-Identifier: GPL-3.0-or-later
// Which GPU of this machine each pipeline device gets, and how much of it; and why a design's mapping cannot be had
// here, which needs nothing but the list of GPUs: so it is known before anything runs.
#pragma once

#include "core/base/diagnostic.h"
#include "core/cluster/cluster.h"
#include "executor/cuda/table.h"

#include <vector>

namespace pipewright {

/// What stands against the mapping `wanted` of that many devices, one diagnostic per device or GPU, with the remedy;
/// nothing when there is no mapping. Slices that would fit but for the steps in which a GPU of that architecture is cut
/// are a warning: the driver has the last word.
Diagnostics whyNotPlaced(const std::vector<GpuShare>& wanted, int devices,
                         const std::vector<PipewrightCudaDevice>& gpus);

/// The devices' own mapping where the cluster has one; else device d on GPU d modulo their number, and where several
/// share one GPU, each on an equal slice of it. Throws Error for a mapping that this machine cannot have.
std::vector<GpuShare> gpuSharesFor(const std::vector<GpuShare>& wanted, int devices,
                                   const std::vector<PipewrightCudaDevice>& gpus);

} // namespace pipewright
