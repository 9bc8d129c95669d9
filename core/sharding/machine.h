// SPDX-License-Identifier: GPL-3.0-or-later
// The devices that share a stage, as the cost model sees them: sustained rates, memory, and latency and
// bandwidth of every collective. Doubles in SI units; seconds are converted to nanoseconds for display.
#pragma once

#include "core/base/diagnostic.h"
#include "core/cluster/cluster.h"

#include <array>
#include <string_view>
#include <vector>

namespace pipewright::sharding {

inline constexpr int collectiveKinds = 6;

struct CollectiveCost {
    double latency = 0;   ///< seconds
    double bandwidth = 0; ///< bytes/s; 0: unlimited
};

struct Machine {
    std::vector<double> rate;            ///< FLOP/s
    std::vector<double> memoryBandwidth; ///< bytes/s; 0: memory traffic counts as free
    std::vector<double> memory;          ///< bytes; 0: no limit
    std::array<CollectiveCost, collectiveKinds> collectives{};
    bool grouped = true;

    int devices() const { return static_cast<int>(rate.size()); }
    const CollectiveCost& operator[](Collective kind) const { return collectives[static_cast<std::size_t>(kind)]; }
    /// Each device's share of the work by its rate, the same for every segment.
    std::vector<double> proportional() const;
    std::vector<double> even() const;
};

/// Measured collectives as they are; others as rings over the slowest link among the devices: with n devices,
/// latency a and bandwidth b a hop, an all-gather or reduce-scatter takes (n − 1)·a + volume·(n − 1)/(n·b), an
/// all-reduce twice that, an all-to-all (n − 1)·a + (volume/n)·(n − 1)/(n·b), and each broadcast or reduce of a
/// group (n − 1)·a with its piece at b. Throws Error, places as in a file ("cluster.devices.1.peak_flops"): no
/// devices, a device without a rate, links or rates out of range.
Machine machineOf(const Cluster& cluster);

std::string_view nameOf(Collective kind); ///< "all_gather", as in files

} // namespace pipewright::sharding
