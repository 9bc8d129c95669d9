// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of a layer's graph by their shapes: its products, its attention, and the bytes of all that is bound by
// memory. O(operations).
//
// Bytes are those of kernels as frameworks have them: an activation of one operand that feeds another elementwise
// operation is part of its kernel; an operation reads its operands and writes its result, and its gradient reads what
// arrives and what was kept, and writes what leaves. Where a tensor has several readers, their gradients are summed:
// two are read and one is written. Rotating queries and keys is a kernel of its own.
#pragma once

#include "core/model/operationsizes.h"
#include "core/model/tensorgraph.h"

#include <cstdint>
#include <vector>

namespace pipewright {

/// Elements that tokens fill, per tensor: experts have more slots where tokens do not share out evenly.
class FilledElements {
public:
    explicit FilledElements(const TensorGraph& graph);
    std::int64_t operator()(int tensor) const;
    bool inSlots(int tensor) const { return m_copies[static_cast<std::size_t>(tensor)] > 0; }

private:
    std::int64_t copiesIn(const Node& node) const;
    const TensorGraph& m_graph;
    std::vector<std::int64_t> m_copies; ///< of tokens that a value in the slots of experts stands for; 0: it is in none
};

/// Whether training wants the gradient of a tensor that operations read.
bool needsGradient(const TensorGraph& graph, int tensor);
/// Whether I makes a value again instead of reading it: from what its own, cheap operation of one operand keeps.
bool isRemade(const TensorGraph& graph, int tensor);

/// By the names of their parts, then by what they read.
std::vector<ProductSize> productsOf(const TensorGraph& graph);
std::vector<AttentionSize> attentionsOf(const TensorGraph& graph);
/// Tensors between matrix products are divided by `tokensOver`, the members that split the tokens.
MovedByKind movedBytes(const TensorGraph& graph, std::int64_t tokensOver);

} // namespace pipewright
