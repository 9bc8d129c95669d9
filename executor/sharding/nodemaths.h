// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of one node on whatever piece of its operands a device holds: shapes are those of the given tensors, so the
// same functions run the whole model and any share of it, also a share without rows, on any device. Products, attention
// and norms are the stages' own kernels; the rest are the small operations of kernels/tensors.h.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/sharding/memberdevice.h"

#include <vector>

namespace pipewright::sharding {

struct LocalPart {
    std::int64_t firstRow = 0;  ///< of an embedding's table that is cut by rows
    std::int64_t firstHead = 0; ///< of an attention that is cut by heads
    bool countsOnce = true;     ///< false: leave out the bias, or visits of experts: another device adds them
    // Backward: which gradients are needed; the others are empty tensors, or computed anyway.
    bool inputGrads = true;  ///< of operands that are not parameters
    bool weightGrads = true; ///< of parameters
};

using Operands = std::vector<const Tensor*>;

/// The reasons why a graph cannot run here (operations without maths).
Diagnostics whyNotRunnable(const TensorGraph& graph);

/// In a graph whose values are stored in bf16: whether this node's value stays fp32, as for tokens, losses and the
/// experts' weights. Gradients of parameters stay fp32 as well.
bool staysExact(const Node& node);

Tensor forward(MemberDevice& member, const Node& node, const Operands& operands, const LocalPart& part = {});

/// Gradients of all operands, from the gradient of the result; empty tensors for operands without one (tokens, classes,
/// the pattern of a dispatch).
std::vector<Tensor> backward(MemberDevice& member, const Node& node, const Operands& operands, const Tensor& result,
                             const Tensor& resultGrad, const LocalPart& part = {});

} // namespace pipewright::sharding
