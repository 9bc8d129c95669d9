// SPDX-License-Identifier: GPL-3.0-or-later
// Devices are numbered node by node, so those of one node are neighbours: one pass finds the nodes, and each asks the
// layout for its link to a device outside.
#include "core/design/clusterlinks.h"

#include "core/cluster/nodes.h"
#include "core/rates/operationrates.h"

#include <algorithm>

namespace pipewright {

LinkCosts linkCosts(const LinkSpec& link)
{
    return {link.latency, link.bandwidth, link.bus};
}

LinkCosts linkCosts(const Cluster& cluster)
{
    LinkCosts costs = linkCosts(cluster.link);
    if (cluster.devices.empty() || !cluster.devices.front().rates || cluster.link.bandwidth <= 0)
        return costs;
    constexpr RateDimensions large{2, 1 << 26}; // bytes of a message whose latency is small beside them
    if (const auto rate =
            cluster.devices.front().rates->find({RatedOperation::Send, {}, {}, cluster.link.name, large})) {
        costs.latency = toNanoseconds(rate->latency);
        costs.bytesPerSecond = rate->of(cluster.link.bandwidth).perSecond;
    }
    return costs;
}

NodeLinks nodeLinksOf(const Cluster& cluster, const Parallelism& parallel)
{
    NodeLinks links;
    const int devices = static_cast<int>(cluster.devices.size());
    const NodeLayout layout(cluster, {parallel.tensor, parallel.context, parallel.data, devices});
    if (devices == 0 || layout.onOneNode(0, devices - 1))
        return links;
    int underSwitch = 0;
    for (int d = 0; d < devices; ++d) {
        if (d > 0 && !layout.underOneSwitch(d - 1, d))
            ++underSwitch;
        if (d == 0 || !layout.onOneNode(d - 1, d)) {
            NodeLinks::Node& node = links.nodes.emplace_back();
            node.underSwitch = underSwitch;
            for (const int other : {0, devices - 1}) // under other switches, if there are others
                if (other != d && !layout.underOneSwitch(std::min(d, other), std::max(d, other)))
                    node.beyondSwitch = linkCosts(layout.between(d, other));
        }
        links.nodeOfDevice.push_back(static_cast<int>(links.nodes.size()) - 1);
    }
    const auto toNeighbour = [&](int d, int other) {
        const int here = links.nodeOfDevice[d];
        if (here != links.nodeOfDevice[other] && layout.underOneSwitch(std::min(d, other), std::max(d, other)))
            links.nodes[here].network = linkCosts(layout.between(d, other));
    };
    for (int d = 1; d < devices; ++d) {
        toNeighbour(d - 1, d);
        toNeighbour(d, d - 1);
    }
    return links;
}

void takeClusterLinks(const Cluster& cluster, const Parallelism& parallel, Costs& costs)
{
    costs.setAllLinks(linkCosts(cluster));
    costs.nodeLinks = nodeLinksOf(cluster, parallel);
    for (const auto& [pair, link] : cluster.linkOfPair)
        costs.linkOfPair[pair] = linkCosts(link);
    costs.hostLink.reset();
    if (cluster.hostLink)
        costs.hostLink = linkCosts(*cluster.hostLink);
}

void keepReduceTime(const Dataflow& dataflow, const std::vector<int>& deviceOfStage, Costs& costs)
{
    Nanoseconds longest = costs.reduce;
    for (const SharedParameter& shared : dataflow.shared)
        longest = std::max(
            longest, costs.reduceTime(deviceOfStage[shared.rootStage], deviceOfStage[shared.otherStage], shared.bytes));
    costs.reduce = longest;
}

} // namespace pipewright
