// SPDX-License-Identifier: GPL-3.0-or-later
// Arithmetic on the numbering of devices: the place of each member of each stage, which pairs cross a node or a switch,
// and what share of cards and of the fabric each crossing has. O(devices) for a pipeline.
#include "core/cluster/nodes.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace pipewright {

namespace {

bool isSlower(const LinkSpec& link, const LinkSpec& than)
{
    if (link.bandwidth != than.bandwidth) // 0 is unlimited
        return than.bandwidth == 0 || (link.bandwidth > 0 && link.bandwidth < than.bandwidth);
    return link.latency > than.latency;
}

/// Hops of one kind have one link: 0 within a node, 1 between nodes under one switch, 2 beyond it.
std::size_t kindOfHop(const Nodes& nodes, std::int64_t from, std::int64_t to)
{
    if (nodes.devices == 0 || from / nodes.devices == to / nodes.devices)
        return 0;
    const std::int64_t perSwitch = std::int64_t{nodes.perSwitch} * nodes.devices;
    return perSwitch > 0 && from / perSwitch != to / perSwitch ? 2 : 1;
}
using SeenKinds = std::array<bool, 3>;

} // namespace

Nodes withChange(const Cluster& cluster, const NodeChange& change)
{
    Nodes nodes = cluster.nodes;
    if (!change.any())
        return nodes;
    if (nodes.devices == 0)
        throw Error("--nodes, --devices-per-node, --cards-per-node, --nodes-per-switch, --oversubscription",
                    fmt::format("the cluster {} is not made of nodes", cluster.name),
                    "take one that is, such as --cluster h100-nodes");
    const auto take = [](const char* option, const std::optional<int>& wanted, int least, int& field) {
        if (!wanted)
            return;
        if (*wanted < least || *wanted > mostOfNodes)
            throw Error(option, fmt::format("{} is out of range", *wanted),
                        fmt::format("between {} and {}", least, mostOfNodes));
        field = *wanted;
    };
    take("--nodes", change.count, 1, nodes.count);
    take("--devices-per-node", change.devices, 1, nodes.devices);
    take("--cards-per-node", change.cards, 1, nodes.cards);
    take("--nodes-per-switch", change.perSwitch, 0, nodes.perSwitch);
    if (change.oversubscription) {
        if (!(*change.oversubscription >= 1 && *change.oversubscription <= mostOfNodes))
            throw Error("--oversubscription", fmt::format("{} is out of range", *change.oversubscription),
                        "1: switches pass all that their nodes can send; 2: half of it");
        nodes.oversubscription = *change.oversubscription;
    }
    if (change.bandwidth)
        nodes.network.bandwidth = *change.bandwidth;
    return nodes;
}

NodeLayout::NodeLayout(const Cluster& cluster, const GroupSizes& sizes)
    : m_cluster(cluster), m_sizes(sizes), m_members(std::int64_t{sizes.tensor} * sizes.context)
{
    constexpr std::int64_t most = 1'000'000; // every device is looked at
    if (sizes.devices() > most)
        throw Error("cluster", fmt::format("{} devices are needed", sizes.devices()), fmt::format("at most {}", most));
    const std::int64_t there = std::int64_t{cluster.nodes.devices} * cluster.nodes.count;
    if (cluster.nodes.devices > 0 && sizes.devices() > there)
        throw Error("cluster.nodes",
                    fmt::format("{} devices are needed, and {} nodes of {} have {}", sizes.devices(),
                                cluster.nodes.count, cluster.nodes.devices, there),
                    "use smaller degrees of parallelism, fewer pipeline devices, or more nodes");
}

LinkSpec NodeLayout::hop(std::int64_t from, std::int64_t to, std::int64_t senders) const
{
    const Nodes& nodes = m_cluster.nodes;
    const std::size_t kind = kindOfHop(nodes, from, to);
    if (kind == 0)
        return m_cluster.link;
    LinkSpec link = nodes.network;
    if (link.bandwidth <= 0)
        return link;
    senders = std::clamp<std::int64_t>(senders, 1, nodes.devices);
    link.bandwidth = std::min(link.bandwidth, link.bandwidth * nodes.cards / static_cast<double>(senders));
    if (kind == 2) {
        const double share = nodes.network.bandwidth * nodes.cards / nodes.devices / nodes.oversubscription;
        link.bandwidth = std::min(link.bandwidth, share);
    }
    return link;
}

LinkSpec NodeLayout::between(int from, int to) const
{
    const Nodes& nodes = m_cluster.nodes;
    const std::int64_t perStage = m_members * m_sizes.data;
    LinkSpec slowest = hop(from * perStage, to * perStage, perStage);
    if (nodes.devices == 0)
        return slowest;
    std::int64_t sender = from * perStage;
    SeenKinds seen{};
    seen[kindOfHop(nodes, from * perStage, to * perStage)] = true;
    const std::int64_t alike = std::gcd(perStage, std::int64_t{nodes.devices}); // no node begins between
    for (std::int64_t i = alike; i < perStage; i += alike)
        if (std::exchange(seen[kindOfHop(nodes, from * perStage + i, to * perStage + i)], true))
            continue;
        else if (const LinkSpec link = hop(from * perStage + i, to * perStage + i, perStage); isSlower(link, slowest)) {
            slowest = link;
            sender = from * perStage + i;
        }
    if (perStage < nodes.devices && nodes.cards < nodes.devices
        && sender / nodes.devices != (sender + (to - from) * perStage) / nodes.devices)
        slowest.bus = fmt::format("network cards of node {}", sender / nodes.devices);
    return slowest;
}

bool NodeLayout::within(std::int64_t devices, int first, int last) const
{
    const std::int64_t perStage = m_members * m_sizes.data;
    return devices == 0 || first * perStage / devices == (last * perStage + perStage - 1) / devices;
}

LinkSpec NodeLayout::ring(const Axis& inner, const Axis& outer) const
{
    if (std::int64_t{inner.count} * outer.count < 2 || m_cluster.nodes.devices == 0)
        return m_cluster.link;
    /// One step on the axis, from its last place back to its first.
    const auto step = [](const Axis& axis, std::int64_t at) {
        return at / axis.stride % axis.count + 1 < axis.count ? axis.stride : -axis.stride * (axis.count - 1);
    };
    // Rings repeat along the devices, and so do nodes and switches; places between which neither a ring nor a node ends
    // send alike.
    const Nodes& nodes = m_cluster.nodes;
    const std::int64_t perSwitch = std::int64_t{nodes.devices} * std::max(1, nodes.perSwitch);
    std::int64_t period = perSwitch, alike = nodes.devices;
    for (const Axis& axis : {inner, outer})
        if (axis.count > 1) {
            period = std::lcm(period, axis.stride * axis.count);
            alike = std::gcd(alike, axis.stride);
        }
    LinkSpec slowest;
    SeenKinds seen{};
    for (std::int64_t from = 0; from < std::min(m_sizes.devices(), period); from += alike) {
        const std::int64_t inside = step(inner, from);
        const std::int64_t to = from + inside + (inside > 0 ? 0 : step(outer, from));
        if (std::exchange(seen[kindOfHop(nodes, from, to)], true))
            continue;
        const LinkSpec link = hop(from, to, nodes.devices);
        if (from == 0 || isSlower(link, slowest))
            slowest = link;
    }
    return slowest;
}

int NodeLayout::onNode(const Axis& axis) const
{
    const std::int64_t devices = m_cluster.nodes.devices;
    if (devices == 0 || axis.count < 2)
        return axis.count;
    // Groups repeat along the devices, and so do nodes; groups that begin between two of these places stand alike.
    const std::int64_t group = axis.stride * axis.count, alike = std::gcd(devices, axis.stride);
    int fewest = axis.count;
    for (std::int64_t first = 0; first < std::min(m_sizes.devices(), std::lcm(devices, group)); first += alike) {
        if (first / axis.stride % axis.count != 0)
            continue;
        int here = 0;
        for (int member = 0; member < axis.count; ++member) {
            const std::int64_t at = first + member * axis.stride;
            ++here;
            if (member + 1 == axis.count || at / devices != (at + axis.stride) / devices)
                fewest = std::min(fewest, std::exchange(here, 0));
        }
    }
    return fewest;
}

} // namespace pipewright
