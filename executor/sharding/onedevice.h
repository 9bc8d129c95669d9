// SPDX-License-Identifier: GPL-3.0-or-later
// A whole model on one device, forward and backward node by node: the reference for every shared run. Its duration
// measures a device's rate. Sequences may be cut into pieces: forwards run from the first to the last, backwards from
// the last to the first.
#pragma once

#include "executor/sharding/nodemaths.h"
#include "executor/sharding/shardingrun.h"

#include <functional>
#include <map>
#include <memory>

namespace pipewright::sharding {

class OneDevice {
public:
    /// Throws Error with whyNotRunnable(). `rounds`: rounds to bf16 every value that groups store in bf16. `later`: the
    /// inputs of the further pieces. `balanceOver`: as in LayerSettings.
    OneDevice(MemberDevice& member, const TensorGraph& graph, const LeafValues& leaves, bool rounds = false,
              std::span<const LeafValues> later = {}, double balanceOver = 1);

    /// From the next step on: replaces the operations for the forward of a node; null: the member's own operations.
    using Operations = std::function<std::unique_ptr<kernels::Operations>(const Node& node, int piece)>;
    void forwardWith(Operations operations) { m_operations = std::move(operations); }

    /// Issues one step without waiting for it. `weight`: of the loss in the quantity that is differentiated.
    void step(float weight = 1);
    /// The result of the last step, copied to the host.
    SingleRun result();

private:
    using Tensors = std::vector<Tensor>; ///< of every tensor of the graph
    Operands operandsOf(const Node& node, int piece) const;
    SequencePiece pieceOf(int tensor, int piece);
    Tensor forwardOf(int tensor, int piece);
    void forward(int piece);
    void backward(int piece, float weight);
    void round(const Node& node, Tensor& tensor) const;

    MemberDevice& m_member;
    const TensorGraph& m_graph;
    bool m_rounds;
    Operations m_operations;
    std::map<int, NodeMaths> m_maths; ///< of the tensors that are no leaves
    std::vector<Tensors> m_values;    ///< per piece; leaves stay
    Tensors m_gradients;              ///< of a piece; those of parameters, of all pieces
    Tensors m_sequenceGradients;      ///< of attentions: those of earlier pieces' keys and values
};

} // namespace pipewright::sharding
