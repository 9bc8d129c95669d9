// SPDX-License-Identifier: GPL-3.0-or-later
// The hardware: devices (rate, memory) and links (latency, bandwidth). A device may be a GPU, a slice of one, a CPU
// thread or a remote rank, as the backend decides.
#pragma once

#include "core/base/producttype.h"
#include "core/base/units.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright {

struct Cluster;
struct OperationRates; // core/rates/operationrates.h

struct DeviceSpec {
    std::string name;           ///< "H200 SXM"
    Bytes memory = 0;           ///< 0: no limit known
    double peakFlops = 0;       ///< FLOP/s, dense, in the model's type
    double memoryBandwidth = 0; ///< bytes/s
    double efficiency = 0.5;    ///< share of each peak that large matrix products reach end to end
    /// The narrower side of a weight matrix at which a product reaches half of `efficiency`; with a side of w it
    /// reaches w / (w + halfRateWidth) of it. 0: the width does not matter. For single devices, not for a group's
    /// members.
    double halfRateWidth = 0;
    /// What operations reached on it, by their shapes; then `efficiency` only counts for those that it does not know.
    /// Null: nothing was measured. A group's members have none.
    std::shared_ptr<const OperationRates> rates{};
    /// A group of devices that hold every stage of this one together; the numbers above are then asOneDevice()'s.
    std::shared_ptr<const Cluster> group{};
    double peakFp8 = 0, peakNvfp4 = 0; ///< as peakFlops, of products in these; 0: it has none, or it is not known
    const double& peakOf(ProductType products) const; ///< 0: not known
    double& peakOf(ProductType products) { return const_cast<double&>(std::as_const(*this).peakOf(products)); }
    bool operator==(const DeviceSpec& other) const; ///< groups and rates by what they hold
};

/// Where the CUDA backend runs a pipeline device.
struct GpuShare {
    int gpu = 0;             ///< counted from 0
    int multiprocessors = 0; ///< of an exclusive slice; 0: the whole GPU, shared with other processes
    bool operator==(const GpuShare&) const = default;
};

struct LinkSpec {
    std::string name; ///< "NVLink 4", "PCIe 5 x16", "host memory"
    Nanoseconds latency = 0;
    double bandwidth = 0; ///< bytes/s in one direction; 0: unlimited
    std::string bus{};    ///< links of the same name share one wire; empty: a wire of its own
    bool operator==(const LinkSpec&) const = default;
};

/// How a cluster's devices are placed on nodes: the devices per node, and the network cards that they share. The link
/// of the cluster is then the one inside a node. How pipelines are laid over nodes is in nodes.h.
struct Nodes {
    int devices = 0;             ///< of one node; 0: the cluster is not made of nodes
    int count = 1;               ///< how many there are
    int cards = 1;               ///< of one node
    LinkSpec network;            ///< of one card
    int perSwitch = 0;           ///< nodes under one switch; 0: all
    double oversubscription = 1; ///< between switches: bandwidth of their nodes' cards / bandwidth of the fabric
    bool operator==(const Nodes&) const = default;
};

/// Collectives of the devices of a group.
enum class Collective { AllGather, GroupedBroadcast, AllReduce, ReduceScatter, GroupedReduce, AllToAll };

/// A measured collective: it takes latency + volume / bandwidth, where the volume is that of a whole all-reduced
/// tensor, of the pieces of a grouped broadcast or reduce, and otherwise the number of devices times the largest piece,
/// since those pad every piece to the largest. A grouped one pays its latency once per device.
struct CollectiveSpec {
    Nanoseconds latency = 0;
    double bandwidth = 0; ///< bytes/s; 0: unlimited
    bool operator==(const CollectiveSpec&) const = default;
};

struct Cluster {
    // Out of line: inlined, each is kilobytes of code in every file that uses one.
    Cluster();
    Cluster(const Cluster& other);
    Cluster(Cluster&& other) noexcept;
    Cluster& operator=(const Cluster& other);
    Cluster& operator=(Cluster&& other) noexcept;
    ~Cluster();

    std::string name;
    std::vector<DeviceSpec> devices;
    LinkSpec link;                                      ///< between any two devices …
    std::map<std::pair<int, int>, LinkSpec> linkOfPair; ///< … unless this directed pair is listed
    std::optional<LinkSpec>
        hostLink{}; ///< between each device and the host's memory, a wire each way; unset: not known
    std::map<Collective, CollectiveSpec> collectives{}; ///< measured ones; the others follow from the links
    bool groupedCollectives = true;                     ///< false: collectives always pad to the largest piece
    Nodes nodes{};
    std::vector<GpuShare> gpus{}; ///< per device; empty: it does not matter
    bool operator==(const Cluster& other) const;
};

/// A group as one device: summed peak rates and bandwidths, the efficiency that gives the sum of the rates, the
/// smallest memory (no limit when any has none), and the cluster's name.
DeviceSpec asOneDevice(Cluster members);

} // namespace pipewright
