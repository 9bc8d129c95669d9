// SPDX-License-Identifier: GPL-3.0-or-later
// Weighted linear least squares in closed form for time = latency × hops + volume / bandwidth, with a refit when one of
// the two would be negative. O(samples).
#include "core/sharding/collectivefit.h"

#include "core/base/diagnostic.h"
#include "core/sharding/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright::sharding {

double volumeOf(const CollectiveSample& sample)
{
    switch (sample.kind) {
    case Collective::AllReduce:
    case Collective::GroupedBroadcast:
    case Collective::GroupedReduce: return sample.bytes;
    case Collective::AllGather:
    case Collective::ReduceScatter:
    case Collective::AllToAll: break;
    }
    return sample.bytes * sample.skew;
}

int latenciesOf(Collective kind, int devices)
{
    return kind == Collective::GroupedBroadcast || kind == Collective::GroupedReduce ? devices : 1;
}

CollectiveSpec fitted(Collective kind, std::span<const CollectiveSample> samples, int devices)
{
    // Weighted by 1 / seconds²: x = latency, y = seconds per byte.
    double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
    const double latencies = latenciesOf(kind, devices);
    for (const CollectiveSample& sample : samples) {
        if (sample.kind != kind || !(sample.seconds > 0))
            continue;
        const double p = latencies / sample.seconds, q = volumeOf(sample) / sample.seconds;
        aa += p * p, ab += p * q, bb += q * q, a += p, b += q;
    }
    if (aa == 0)
        throw Error(std::string(nameOf(kind)), "no measured times", "measure it at several sizes");
    const double determinant = aa * bb - ab * ab;
    double latency = 0, perByte = 0;
    if (determinant > 1e-12 * aa * bb) {
        latency = (a * bb - b * ab) / determinant;
        perByte = (b * aa - a * ab) / determinant;
    } else {
        latency = a / aa; // one volume only: all of its time is latency
    }
    if (latency < 0) {
        latency = 0;
        perByte = b / bb;
    } else if (perByte < 0) {
        latency = a / aa;
        perByte = 0;
    }
    return {static_cast<Nanoseconds>(std::llround(latency * 1e9)), perByte > 0 ? 1 / perByte : 0};
}

double fittedSeconds(const Cluster& cluster, const CollectiveSample& sample, int devices)
{
    const CollectiveSpec& spec = cluster.collectives.at(sample.kind);
    return 1e-9 * static_cast<double>(spec.latency) * latenciesOf(sample.kind, devices)
           + (spec.bandwidth > 0 ? volumeOf(sample) / spec.bandwidth : 0);
}

} // namespace pipewright::sharding
