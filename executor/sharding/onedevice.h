// SPDX-License-Identifier: GPL-3.0-or-later
// A whole model on one device, forward and backward node by node: the reference for every shared run. Its duration
// measures a device's rate.
#pragma once

#include "executor/sharding/nodemaths.h"
#include "executor/sharding/shardingrun.h"

#include <functional>
#include <map>
#include <memory>

namespace pipewright::sharding {

class OneDevice {
public:
    /// Throws Error with whyNotRunnable(). `rounds`: rounds to bf16 every value that groups store in bf16.
    OneDevice(MemberDevice& member, const TensorGraph& graph, const LeafValues& leaves, bool rounds = false);

    /// From the next step on: replaces the operations for the forward of a node; null: the member's own operations.
    using Operations = std::function<std::unique_ptr<kernels::Operations>(const Node& node)>;
    void forwardWith(Operations operations) { m_operations = std::move(operations); }

    /// Issues one step without waiting for it. `weight`: of the loss in the quantity that is differentiated.
    void step(float weight = 1);
    /// The result of the last step, copied to the host.
    SingleRun result();

private:
    Operands operandsOf(const Node& node) const;
    Tensor forwardOf(int tensor);
    void round(const Node& node, Tensor& tensor) const;

    MemberDevice& m_member;
    const TensorGraph& m_graph;
    bool m_rounds;
    Operations m_operations;
    std::map<int, NodeMaths> m_maths; ///< of the tensors that are no leaves
    std::vector<Tensor> m_values;     ///< of every tensor; leaves stay
    std::vector<Tensor> m_gradients;  ///< of every tensor
};

} // namespace pipewright::sharding
