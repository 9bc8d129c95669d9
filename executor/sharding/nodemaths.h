// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of one node on whatever piece of its operands a device holds: the same rows of operations that layers of
// stages run (executor/stage/stepwriter.h), with a plan of the node alone, so also on a share without rows and on any
// device. The calls of kernels are resolved once; a pass gives them its tensors.
#pragma once

#include "executor/sharding/loneplan.h"
#include "executor/sharding/memberdevice.h"

#include <vector>

namespace pipewright::sharding {

using Operands = std::vector<const Tensor*>;

/// Which gradients a backward is asked for. It returns empty tensors for the others, or computes them anyway.
struct Wanted {
    bool inputs = true;     ///< of operands that are not parameters
    bool parameters = true; ///< of parameters
};

/// Which piece of its sequences a node works on, and what its attention shares with the other pieces.
struct SequencePiece {
    int index = 0;
    Tensor earlier{};             ///< keys and values of each earlier piece, as F had them; a pass rotates the keys
    std::span<float> gradients{}; ///< of these, collected from the last piece to the first (kernels/attention.h)
};

/// What a node's backward is given besides its operands.
struct BackwardWith {
    SequencePiece piece{};
    Tensor visits{}; ///< of a router with a load-balancing term: visits() of all members' tokens
};

class NodeMaths {
public:
    /// Of a member's share, with the shapes of its operands and its result. The node must outlive this. Throws Error
    /// for an operation without maths.
    NodeMaths(const Node& node, std::vector<Shape> operands, Shape result, const LocalPart& part = {});
    /// Of a whole node of a graph.
    NodeMaths(const TensorGraph& graph, const Node& node, const LocalPart& part = {});

    Tensor forward(MemberDevice& member, const Operands& operands, const SequencePiece& piece = {}) const;
    /// Gradients of all operands, from the gradient of the result; empty tensors for operands without one (tokens,
    /// classes).
    std::vector<Tensor> backward(MemberDevice& member, const Operands& operands, const Tensor& result,
                                 const Tensor& resultGrad, const Wanted& wanted = {},
                                 const BackwardWith& with = {}) const;
    /// Of a router with a load-balancing term: the copies of these tokens that visit each expert. Else it is empty.
    Tensor visits(MemberDevice& member, const Operands& operands) const;
    bool hasVisits() const;
    /// Whether the gradients of its parameters are made with those of its other operands, and not without.
    bool makesAllAtOnce() const;
    /// Elements of SequencePiece::gradients; 0: the node has nothing to do with other pieces.
    std::size_t sequenceGradient() const;

private:
    class Pass;
    void addRow();
    Tensor forwardOfNothing(MemberDevice& member, const Operands& operands) const;
    std::vector<Tensor> backwardOfNothing(MemberDevice& member, const Operands& operands, const Tensor& resultGrad,
                                          const Wanted& wanted) const;
    bool isWanted(int operand, const Wanted& wanted) const;

    LonePlan m_plan;
    LayerSteps m_steps;
    int m_whole = -1;       ///< the operand with whole numbers; -1: none
    int m_asWhole = -1;     ///< the same where the row reads it as integers
    bool m_isEmpty = false; ///< nothing of it is here, except biases
};

} // namespace pipewright::sharding
