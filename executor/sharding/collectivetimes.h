// SPDX-License-Identifier: GPL-3.0-or-later
// Calibrates a backend's devices for shared stages: how fast each computes a model while the others compute too, and
// how long every collective takes at several sizes and skews.
#pragma once

#include "core/model/tensorgraph.h"
#include "core/sharding/collectivefit.h"
#include "executor/runtime/backend.h"

#include <vector>

namespace pipewright::sharding {

struct MeasuredGroup {
    std::vector<double> rates; ///< FLOP/s of every device, with FLOPs counted as in the graph
    std::vector<CollectiveSample> samples;
};

struct MeasuredGroupOptions {
    std::vector<std::int64_t> elements{1 << 10, 1 << 14, 1 << 18, 1 << 20}; ///< of the whole tensor
    int repetitions = 5;                                                    ///< the median counts; one more warms up
};

/// Measures all devices at the same time. Throws Error with whyNotRunnable(), or when the graph has no FLOPs to
/// measure.
MeasuredGroup measureDevices(const TensorGraph& graph, Backend& backend, const MeasuredGroupOptions& options = {});

/// The cluster with measured rates and collectives; its devices and memories stay. The rates include the effect of
/// memory bandwidth.
Cluster calibrated(Cluster cluster, const MeasuredGroup& times);

} // namespace pipewright::sharding
