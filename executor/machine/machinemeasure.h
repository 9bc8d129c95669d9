// SPDX-License-Identifier: GPL-3.0-or-later
// This machine as a cluster: how fast each device of a backend multiplies matrices, alone and while all others do too,
// how fast it copies, and how long a message takes between every two of them. A message takes latency + bytes /
// bandwidth, fitted to the medians of a small and a large one, each half of a round trip. Rates are achieved ones, so
// nothing here is a vendor's figure.
#pragma once

#include "core/cluster/cluster.h"
#include "executor/runtime/backend.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct MachineMeasureOptions {
    int productSize = 512; ///< rows, inputs and outputs of the products
    Bytes copyBytes = Bytes{32} << 20;
    Bytes smallMessage = 256, largeMessage = Bytes{8} << 20;
    int repetitions = 9; ///< the median counts; one more warms up
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(double fraction, const std::string& what)> progress{};
};

struct MachineMeasurement {
    struct Device {
        std::string name;
        Bytes memory = 0;               ///< its share of its pool; 0: not known
        double alone = 0, together = 0; ///< FLOP/s of products; together: while all devices do the same
        double copying = 0;             ///< bytes/s read and written by a copy, while all do the same
    };
    struct Pair {
        int first = 0, second = 0;
        Nanoseconds latency = 0;
        double bandwidth = 0; ///< bytes/s in one direction
    };
    std::vector<Device> devices;
    std::vector<Pair> pairs; ///< each two devices once
    /// How much longer a large message takes while other devices exchange theirs; 0: fewer than four devices, so it
    /// was not measured.
    double crowding = 0;

    bool linksShareAWire() const { return crowding > 1.5; }
};

/// Throws Error when it was cancelled, or a device has not the memory.
MachineMeasurement measureMachine(Backend& backend, const MachineMeasureOptions& options = {});

/// The host's threads as devices that share its memory evenly. Throws Error: too many to measure every pair.
std::unique_ptr<Backend> thisMachine(int devices);

/// The devices with what they reach together, the median link, and links of their own for pairs that are more than half
/// as fast again, or slower by that.
Cluster clusterOf(const MachineMeasurement& machine, const std::string& name);

} // namespace pipewright
