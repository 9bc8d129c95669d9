// SPDX-License-Identifier: GPL-3.0-or-later
// This machine as a cluster: how fast each device of a backend multiplies matrices, alone and while all others do too,
// how fast it copies, how long a message takes between every two of them, and whose messages get in each other's way. A
// message takes latency + bytes / bandwidth, fitted to the medians of a small and a large one, each half of a round
// trip. What is timed is made larger, and done several times, until a look at the clock costs nothing beside it. Rates
// are achieved ones, so nothing here is a vendor's figure.
#pragma once

#include "core/cluster/cluster.h"
#include "executor/runtime/backend.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace pipewright {

/// What connects two devices.
struct LinkWay {
    std::string name = "host memory"; ///< the nearest thing that messages pass: "PCIe host bridge"
    std::string wire = "host memory"; ///< only links of the same can get in each other's way: "PCIe"
};

struct MachineMeasureOptions {
    int productSize = 128, mostProductSize = 8192; ///< rows, inputs and outputs of the products
    Bytes copyBytes = Bytes{4} << 20, mostCopyBytes = Bytes{256} << 20;
    Bytes smallMessage = 256, largeMessage = Bytes{1} << 20, mostLargeMessage = Bytes{64} << 20;
    Nanoseconds atLeast = 2'000'000; ///< so long takes what is timed, or its size is the most; 0: once, and the least
    int repetitions = 9;             ///< the median counts; one more warms up
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(double fraction, const std::string& what)> progress{};
    std::function<LinkWay(int first, int second)> wayBetween{}; ///< unset: the host's memory
};

struct MachineMeasurement {
    struct Device {
        std::string name;
        Bytes memory = 0;               ///< its share of its pool; 0: not known
        double alone = 0, together = 0; ///< FLOP/s of products; together: while all devices do the same
        double copying = 0;             ///< bytes/s read and written by a copy, while all do the same
        int productSize = 0;            ///< rows of the products
    };
    struct Pair {
        int first = 0, second = 0;
        Nanoseconds latency = 0;
        double bandwidth = 0; ///< bytes/s in one direction
        LinkWay way;
    };
    /// How much longer large messages take when two pairs exchange them at once.
    struct Crowd {
        std::size_t first = 0, second = 0; ///< places in `pairs`
        double factor = 1;
        bool shares() const { return factor > 1.5; } ///< a wire
    };
    std::vector<Device> devices;
    std::vector<Pair> pairs;   ///< each two devices once
    std::vector<Crowd> crowds; ///< pairs that have no device in common, of the first eight devices; none below four

    bool linksShareAWire() const; ///< some of them
    double crowding() const;      ///< the largest factor; 0: not measured
};

/// Throws Error when it was cancelled, or a device has not the memory or fails.
MachineMeasurement measureMachine(Backend& backend, const MachineMeasureOptions& options = {});

/// The host's threads as devices that share its memory evenly. Throws Error: too many to measure every pair.
std::unique_ptr<Backend> thisMachine(int devices);

/// The devices with what they reach together, the median link, and links of their own for pairs that go another way,
/// are more than half as fast again, or slower by that. Links that get in each other's way have a bus in common, which
/// is called after their wire: all of them where they have one wire, and every two that were measured share it.
Cluster clusterOf(const MachineMeasurement& machine, const std::string& name);

} // namespace pipewright
