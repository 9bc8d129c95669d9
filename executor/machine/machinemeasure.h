// SPDX-License-Identifier: GPL-3.0-or-later
// This machine as a cluster: how fast each device of a backend multiplies matrices, alone and while all others do so
// too, how fast it copies, how long a message takes between every two devices, and which links slow each other down. A
// message takes latency + bytes / bandwidth, fitted to the medians of a small and a large message; each is half of a
// round trip. Timed work is made larger and repeated until the cost of reading the clock is negligible. All rates are
// measured, so nothing here is a vendor's figure.
#pragma once

#include "core/cluster/cluster.h"
#include "executor/runtime/backend.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace pipewright {

/// The connection of two devices.
struct LinkWay {
    std::string name = "host memory"; ///< the closest connection that messages pass: "PCIe host bridge"
    std::string wire = "host memory"; ///< only links with the same wire can slow each other down: "PCIe"
};

struct MachineMeasureOptions {
    int productSize = 128, mostProductSize = 8192; ///< rows, inputs and outputs of the products
    Bytes copyBytes = Bytes{4} << 20, mostCopyBytes = Bytes{256} << 20;
    Bytes smallMessage = 256, largeMessage = Bytes{1} << 20, mostLargeMessage = Bytes{64} << 20;
    Nanoseconds atLeast = 2'000'000; ///< timed work grows until it takes so long or is largest; 0: smallest, once
    int repetitions = 9;             ///< of which the median is taken, after one to warm up
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(double fraction, const std::string& what)> progress{};
    std::function<LinkWay(int first, int second)> wayBetween{}; ///< empty: through the host's memory
};

struct MachineMeasurement {
    struct Device {
        std::string name;
        Bytes memory = 0;               ///< its share of its pool; 0: unknown
        double alone = 0, together = 0; ///< FLOP/s of products; together: while all devices do the same
        double copying = 0;             ///< bytes/s read and written by a copy, while all devices copy
        int productSize = 0;            ///< rows of the products
    };
    struct Pair {
        int first = 0, second = 0;
        Nanoseconds latency = 0;
        double bandwidth = 0; ///< bytes/s in one direction
        LinkWay way;
    };
    /// How much longer large messages take when two pairs exchange messages at the same time.
    struct Crowd {
        std::size_t first = 0, second = 0; ///< indices in `pairs`
        double factor = 1;
        bool shares() const { return factor > 1.5; } ///< a wire
    };
    std::vector<Device> devices;
    std::vector<Pair> pairs;   ///< every two devices once
    std::vector<Crowd> crowds; ///< without a common device, among the first eight devices; none below four

    bool linksShareAWire() const; ///< at least two of them
    double crowding() const;      ///< the largest factor; 0: not measured
};

/// Throws Error when it was cancelled, or a device lacks memory or fails.
MachineMeasurement measureMachine(Backend& backend, const MachineMeasureOptions& options = {});

/// The host's threads as devices that share its memory evenly. Throws Error when there are too many to measure every
/// pair.
std::unique_ptr<Backend> thisMachine(int devices);

/// The devices with the rates that they reach together, and the median link. A pair gets a link of its own if it is
/// connected in another way, or if its latency or bandwidth differs by a factor of more than 1.5. Links that slow each
/// other down share a bus, named after their wire: one bus for all if they have one wire and all measured pairs of
/// links share it.
Cluster clusterOf(const MachineMeasurement& machine, const std::string& name);

} // namespace pipewright
