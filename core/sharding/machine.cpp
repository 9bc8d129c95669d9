// SPDX-License-Identifier: GPL-3.0-or-later
// Collective costs of a group: measured ones, else the ring formulas of machineOf() with the slowest link's latency and
// bandwidth. O(devices²).
#include "core/sharding/machine.h"

#include "core/base/rates.h"
#include "core/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright::sharding {

namespace {

constexpr int mostDevices = 256;
constexpr double fastestDevice = 1e21, fastestLink = 1e18; // larger values are unit mistakes
constexpr Nanoseconds longestLatency = 60'000'000'000;

void checkLink(const LinkSpec& link, const std::string& where, Diagnostics& found)
{
    if (!std::isfinite(link.bandwidth) || link.bandwidth < 0 || link.bandwidth > fastestLink)
        found.push_back(
            {Severity::Error, where + ".bandwidth", fmt::format("a link of {:.3g} bytes per second", link.bandwidth),
             fmt::format("give bytes per second, at most {}; 0 is unlimited", formatBandwidth(fastestLink))});
    if (link.latency < 0 || link.latency > longestLatency)
        found.push_back({Severity::Error, where + ".latency",
                         fmt::format("a latency of {}", formatDuration(link.latency)), "give less than a minute"});
}

Diagnostics checkCluster(const Cluster& cluster)
{
    Diagnostics found;
    if (cluster.devices.empty())
        found.push_back({Severity::Error, "cluster.devices", "there are no devices", "list at least one"});
    if (cluster.devices.size() > mostDevices)
        found.push_back({Severity::Error, "cluster.devices",
                         fmt::format("{} devices share one stage", cluster.devices.size()),
                         fmt::format("at most {}", mostDevices)});
    for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
        const DeviceSpec& device = cluster.devices[d];
        const std::string where = fmt::format("cluster.devices.{}", d);
        const double rate = device.peakFlops * device.efficiency;
        if (!std::isfinite(rate) || rate < 0 || rate > fastestDevice)
            found.push_back({Severity::Error, where + ".peak_flops",
                             fmt::format("device {} ({}) has a rate of {:.3g} FLOP/s", d, device.name, rate),
                             "give FLOP per second"});
        else if (rate == 0)
            found.push_back({Severity::Error, where + (device.peakFlops == 0 ? ".peak_flops" : ".efficiency"),
                             fmt::format("device {} ({}) has a rate of zero", d, device.name),
                             "give its \"peak_flops\" and \"efficiency\", or take it out of the cluster"});
        if (device.halfRateWidth > 0)
            found.push_back({Severity::Error, where + ".half_rate_width",
                             "the programs of a group do not know what narrow matrices cost",
                             "leave it out, and lower the efficiency"});
        if (!std::isfinite(device.memoryBandwidth) || device.memoryBandwidth < 0)
            found.push_back({Severity::Error, where + ".memory_bandwidth", "no memory bandwidth",
                             "give bytes per second; 0 is unlimited"});
    }
    checkLink(cluster.link, "cluster.link", found);
    for (const auto& [pair, link] : cluster.linkOfPair) {
        const std::string where = "cluster.links";
        const auto last = static_cast<int>(cluster.devices.size()) - 1;
        checkLink(link, where, found);
        if (pair.first > last || pair.second > last || pair.first < 0 || pair.second < 0)
            found.push_back({Severity::Error, where,
                             fmt::format("a link from device {} to device {}", pair.first, pair.second),
                             fmt::format("devices are numbered 0 to {}", last)});
        else if (pair.first == pair.second)
            found.push_back(
                {Severity::Error, where, fmt::format("a link from device {} to itself", pair.first), "remove it"});
    }
    for (const auto& [kind, spec] : cluster.collectives)
        checkLink({{}, spec.latency, spec.bandwidth}, fmt::format("cluster.collectives.{}", nameOf(kind)), found);
    return found;
}

/// Largest latency and smallest bandwidth: a ring runs at the pace of its slowest hop.
CollectiveCost slowestLink(const Cluster& cluster)
{
    CollectiveCost slowest;
    const auto include = [&slowest](const LinkSpec& link) {
        slowest.latency = std::max(slowest.latency, static_cast<double>(link.latency) * 1e-9);
        if (link.bandwidth > 0 && (slowest.bandwidth == 0 || link.bandwidth < slowest.bandwidth))
            slowest.bandwidth = link.bandwidth;
    };
    const std::size_t n = cluster.devices.size();
    if (cluster.linkOfPair.size() < n * (n - 1))
        include(cluster.link);
    for (const auto& [pair, link] : cluster.linkOfPair)
        include(link);
    return slowest;
}

CollectiveCost ringCost(Collective kind, const CollectiveCost& link, double n)
{
    const double hops = std::max(1.0, n - 1);
    switch (kind) {
    case Collective::AllGather:
    case Collective::ReduceScatter: return {hops * link.latency, link.bandwidth * n / hops};
    case Collective::AllReduce: return {2 * hops * link.latency, link.bandwidth * n / (2 * hops)};
    case Collective::AllToAll: return {hops * link.latency, link.bandwidth * n * n / hops};
    case Collective::GroupedBroadcast:
    case Collective::GroupedReduce: break;
    }
    return {hops * link.latency, link.bandwidth};
}

} // namespace

std::vector<double> Machine::proportional() const
{
    const double sum = std::accumulate(rate.begin(), rate.end(), 0.0);
    std::vector<double> shares;
    for (const double r : rate)
        shares.push_back(r / sum);
    return shares;
}

std::vector<double> Machine::even() const
{
    return std::vector<double>(rate.size(), 1.0 / devices());
}

Machine machineOf(const Cluster& cluster)
{
    if (Diagnostics found = checkCluster(cluster); !found.empty())
        throw Error(std::move(found));
    Machine machine;
    for (const DeviceSpec& device : cluster.devices) {
        machine.rate.push_back(device.peakFlops * device.efficiency);
        machine.memoryBandwidth.push_back(device.memoryBandwidth);
        machine.memory.push_back(static_cast<double>(device.memory));
    }
    machine.grouped = cluster.groupedCollectives;
    const CollectiveCost link = slowestLink(cluster);
    for (int i = 0; i < collectiveKinds; ++i) {
        const auto kind = static_cast<Collective>(i);
        const auto measured = cluster.collectives.find(kind);
        machine.collectives[i] =
            measured == cluster.collectives.end()
                ? ringCost(kind, link, machine.devices())
                : CollectiveCost{static_cast<double>(measured->second.latency) * 1e-9, measured->second.bandwidth};
    }
    return machine;
}

std::string_view nameOf(Collective kind)
{
    switch (kind) {
    case Collective::AllGather: return "all_gather";
    case Collective::GroupedBroadcast: return "grouped_broadcast";
    case Collective::AllReduce: return "all_reduce";
    case Collective::ReduceScatter: return "reduce_scatter";
    case Collective::GroupedReduce: return "grouped_reduce";
    case Collective::AllToAll: break;
    }
    return "all_to_all";
}

} // namespace pipewright::sharding
