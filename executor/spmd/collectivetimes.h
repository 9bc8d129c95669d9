// SPDX-License-Identifier: GPL-3.0-or-later
// Calibration of the host as a backend of shared stages: how fast a device's thread computes a model while the
// others do too, and how long every collective takes at several sizes and skews.
#pragma once

#include "core/spmd/collectivefit.h"
#include "core/spmd/tensorgraph.h"

#include <vector>

namespace pipewright::spmd {

struct HostTimes {
    std::vector<double> rates; ///< FLOP/s of every device, in the units of the graph's own FLOPs
    std::vector<CollectiveSample> samples;
};

struct HostTimesOptions {
    std::vector<std::int64_t> elements{1 << 10, 1 << 14, 1 << 18, 1 << 20}; ///< of a whole tensor
    int repetitions = 5;                                                    ///< the median counts; one more warms up
};

/// `devices` threads at once. Throws Error with whyNotRunnable(), or when the graph has no FLOPs to go by.
HostTimes measureHost(const TensorGraph& graph, int devices, const HostTimesOptions& options = {});

/// The same devices and memories with measured rates and collectives. Memory bandwidth is in the rates.
Cluster calibrated(Cluster cluster, const HostTimes& times);

} // namespace pipewright::spmd
