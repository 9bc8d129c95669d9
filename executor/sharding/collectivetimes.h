// SPDX-License-Identifier: GPL-3.0-or-later
// Calibration of a backend's devices as those of shared stages: how fast each computes a model while the others do
// too, and how long every collective takes at several sizes and skews.
#pragma once

#include "core/sharding/collectivefit.h"
#include "core/sharding/tensorgraph.h"
#include "executor/runtime/backend.h"

#include <vector>

namespace pipewright::sharding {

struct MeasuredGroup {
    std::vector<double> rates; ///< FLOP/s of every device, in the units of the graph's own FLOPs
    std::vector<CollectiveSample> samples;
};

struct MeasuredGroupOptions {
    std::vector<std::int64_t> elements{1 << 10, 1 << 14, 1 << 18, 1 << 20}; ///< of a whole tensor
    int repetitions = 5;                                                    ///< the median counts; one more warms up
};

/// All devices at once. Throws Error with whyNotRunnable(), or when the graph has no FLOPs to go by.
MeasuredGroup measureDevices(const TensorGraph& graph, Backend& backend, const MeasuredGroupOptions& options = {});

/// The same devices and memories with measured rates and collectives. Memory bandwidth is in the rates.
Cluster calibrated(Cluster cluster, const MeasuredGroup& times);

} // namespace pipewright::sharding
