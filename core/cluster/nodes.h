// SPDX-License-Identifier: GPL-3.0-or-later
// How a pipeline of groups is laid over the nodes of a cluster, and the links that follow. The rule is Megatron's: all
// devices are numbered node by node, and of the axes of parallelism tensor runs fastest, then context, then data, and
// the pipeline slowest: device ((p·D + d)·C + c)·T + t. So tensor-parallel members share a node where they
// fit into one, and stages are far apart.
//
// A link inside a node is the cluster's link; a link between nodes is that of the network cards. The members of a stage
// in one node send at the same time and share the node's cards; with fewer cards than devices the other stages of the
// node queue for them (LinkSpec::bus). Between switches all nodes are taken to send at the same time, so that each has
// its bandwidth over the oversubscription. A ring is as fast as its slowest hop.
#pragma once

#include "core/cluster/cluster.h"

#include <cstdint>
#include <optional>

namespace pipewright {

/// Changes of a cluster's nodes; unset fields stay as they are.
struct NodeChange {
    std::optional<int> count, devices, cards;
    std::optional<int> perSwitch; ///< 0: all nodes under one
    std::optional<double> oversubscription;
    std::optional<double> bandwidth; ///< of one card, bytes/s
    bool any() const { return count || devices || cards || perSwitch || oversubscription || bandwidth; }
};
inline constexpr int mostOfNodes = 65'536; ///< nodes, devices of one, cards of one

/// Throws Error, naming the option of the command line, for a cluster without nodes and for numbers that no nodes have.
Nodes withChange(const Cluster& cluster, const NodeChange& change);

struct GroupSizes {
    int tensor = 1, context = 1, data = 1, pipeline = 1;
    std::int64_t devices() const { return std::int64_t{tensor} * context * data * pipeline; }
};

class NodeLayout {
public:
    /// Throws Error when the nodes have fewer devices than are needed.
    NodeLayout(const Cluster& cluster, const GroupSizes& sizes);

    /// Between the same members of two pipeline devices: the slowest over all members.
    LinkSpec between(int from, int to) const;
    /// Whether all members of these pipeline devices and of those between them stand on one node, or under one switch.
    /// Precondition: first <= last.
    bool onOneNode(int first, int last) const { return within(m_cluster.nodes.devices, first, last); }
    bool underOneSwitch(int first, int last) const
    {
        return within(std::int64_t{m_cluster.nodes.devices} * m_cluster.nodes.perSwitch, first, last);
    }
    /// The slowest ring of tensor-parallel members, of context-parallel members, and of `copies` data-parallel members
    /// with a distance of `apart` copies.
    LinkSpec tensorRing() const { return ring({1, m_sizes.tensor}); }
    LinkSpec contextRing() const { return ring({m_sizes.tensor, m_sizes.context}); }
    LinkSpec dataRing(int copies, int apart = 1) const { return ring({m_members * apart, copies}); }
    /// Of `copies` data-parallel members, and of `count` of a stage's devices, how many stand on one node: the fewest.
    int copiesOnNode(int copies) const { return onNode({m_members, copies}); }
    int devicesOnNode(int count) const { return onNode({1, count}); }
    /// The slowest ring of `count` of a stage's devices, counted through all axes but the pipeline's.
    LinkSpec stageRing(int count, int apart = 1) const { return ring({apart, count}); }
    /// The slowest ring of those that hold the same parameters: the context-parallel members of such copies.
    LinkSpec gradientRing(int copies, int apart = 1) const
    {
        return ring({m_sizes.tensor, m_sizes.context}, {m_members * apart, copies});
    }

private:
    /// Members that differ in their place on one axis.
    struct Axis {
        std::int64_t stride = 1;
        int count = 1;
    };
    bool within(std::int64_t devices, int first, int last) const; ///< of one run of so many; 0: of all
    int onNode(const Axis& axis) const;
    /// Through all members of `inner`, for each of `outer`.
    LinkSpec ring(const Axis& inner, const Axis& outer) const;
    LinkSpec ring(const Axis& axis) const { return ring(axis, {}); }
    /// `senders`: devices of a node that send at the same time.
    LinkSpec hop(std::int64_t from, std::int64_t to, std::int64_t senders) const;

    const Cluster& m_cluster;
    GroupSizes m_sizes;
    std::int64_t m_members; ///< of one stage's device
};

} // namespace pipewright
