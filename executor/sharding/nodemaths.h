// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of one node on whatever piece of its operands a device holds: shapes are those of the tensors
// given, so that the same functions run the whole model and any share of it, one of no rows included, on whatever
// device they lie. Products, attention and norms are the stages' own kernels; the rest are the small operations of
// kernels/tensors.h.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/sharding/memberdevice.h"

#include <vector>

namespace pipewright::sharding {

struct LocalPart {
    std::int64_t firstRow = 0; ///< of an embedding's table that is cut by rows
    bool countsOnce = true;    ///< false: leave out the bias, another device adds it
    // Backward: which gradients are asked for; of the others there are empty tensors, or what came along.
    bool inputGrads = true;  ///< of operands that are no parameters
    bool weightGrads = true; ///< of parameters
};

using Operands = std::vector<const Tensor*>;

/// What keeps a graph from running here (an operation without maths).
Diagnostics whyNotRunnable(const TensorGraph& graph);

/// Of a graph whose values are stored in bf16: whether this one stays fp32, as tokens, losses and the experts' weights
/// do. Gradients of parameters do too.
bool staysExact(const Node& node);

Tensor forward(MemberDevice& member, const Node& node, const Operands& operands, const LocalPart& part = {});

/// Gradients of every operand from that of the result; empty tensors for operands that have none (tokens,
/// classes, the pattern of a dispatch).
std::vector<Tensor> backward(MemberDevice& member, const Node& node, const Operands& operands, const Tensor& result,
                             const Tensor& resultGrad, const LocalPart& part = {});

} // namespace pipewright::sharding
