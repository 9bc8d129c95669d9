// SPDX-License-Identifier: GPL-3.0-or-later
// Fits the latency and bandwidth of each collective to measurements over sizes and skews.
#pragma once

#include "core/cluster/cluster.h"

#include <span>

namespace pipewright::sharding {

/// One kind of collective on a tensor of so many bytes.
struct CollectiveSample {
    Collective kind = Collective::AllGather;
    double bytes = 0;   ///< of the whole tensor
    double skew = 1;    ///< devices times the largest piece, over the whole
    double seconds = 0; ///< until the last device has its result
};

/// The volume that a collective's time is proportional to (core/cluster/cluster.h), and how many latencies it pays.
double volumeOf(const CollectiveSample& sample);
int latenciesOf(Collective kind, int devices);

/// Latency and bandwidth of least squared relative error; neither is negative. Bandwidth 0 (unlimited) when larger
/// volumes take no longer. Throws Error without samples of the kind.
CollectiveSpec fitted(Collective kind, std::span<const CollectiveSample> samples, int devices);

/// The predicted time of a sample by the cluster's fitted collectives, in seconds.
double fittedSeconds(const Cluster& cluster, const CollectiveSample& sample, int devices);

} // namespace pipewright::sharding
