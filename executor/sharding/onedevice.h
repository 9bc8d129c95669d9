// SPDX-License-Identifier: GPL-3.0-or-later
// A whole model on one device, node by node and back: what every shared run is compared with, and by how long it
// takes, what a device's rate is measured.
#pragma once

#include "executor/sharding/nodemaths.h"
#include "executor/sharding/shardingrun.h"

#include <functional>
#include <memory>

namespace pipewright::sharding {

class OneDevice {
public:
    /// Throws Error with whyNotRunnable().
    /// `rounds`: to bf16, whatever groups store in it.
    OneDevice(MemberDevice& member, const TensorGraph& graph, const LeafValues& leaves, bool rounds = false);

    /// Operations in place of the member's own, for the forward of a node; null: the member's. Of every step from now
    /// on.
    using Operations = std::function<std::unique_ptr<kernels::Operations>(const Node& node)>;
    void forwardWith(Operations operations) { m_operations = std::move(operations); }

    /// Issues one step; the member knows when it is done. `weight`: of the loss, in what the gradients are of.
    void step(float weight = 1);
    /// Of the last step, brought to the host.
    SingleRun result();

private:
    Operands operandsOf(const Node& node) const;
    Tensor forwardOf(const Node& node);
    void round(const Node& node, Tensor& tensor) const;

    MemberDevice& m_member;
    const TensorGraph& m_graph;
    bool m_rounds;
    Operations m_operations;
    std::vector<Tensor> m_values;    ///< of every tensor; leaves stay
    std::vector<Tensor> m_gradients; ///< of every tensor
    std::map<std::pair<int, int>, Tensor> m_shares;
};

} // namespace pipewright::sharding
