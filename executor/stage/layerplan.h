// SPDX-License-Identifier: GPL-3.0-or-later
// Where the values of a layer's graph and their gradients lie: in the stream, in the tensors that the layer keeps, or
// in the workspace of its input gradient. A gradient takes the place of another one wherever the operation between them
// works in place, so that W finds it where it is kept. Built once per layer; O(tensors x kept tensors).
#pragma once

#include "core/model/layersofgraph.h"
#include "executor/stage/parameterlayout.h"
#include "executor/stage/steps.h"

#include <optional>
#include <string_view>
#include <vector>

namespace pipewright {

class LayerPlan {
public:
    /// The graph of the workload's layer number `layer`. `plainAttention`: attention.h's kernels, whose gradients of
    /// queries, keys and values are rows side by side.
    LayerPlan(TensorGraph graph, int layer, bool plainAttention, const StageLayout& layout,
              const ParameterLayout& parameters);

    const Node& node(int tensor) const { return m_graph.node(tensor); }
    int size() const { return m_graph.size(); }
    /// Of the node that makes a tensor; empty: it is a leaf.
    std::string_view operation(int tensor) const;
    bool isActivation(int tensor) const;
    bool isNorm(int tensor) const;
    /// The nodes that compute, in the order of F: operands from the last to the first, so that keys are assembled
    /// before queries take their memory.
    const std::vector<int>& order() const { return m_order; }
    /// The only node that reads a tensor; -1: none or several do.
    int reader(int tensor) const;
    int operand(int tensor, std::size_t index) const { return node(tensor).operands[index]; }
    bool hasOperand(int tensor, std::size_t index) const { return index < node(tensor).operands.size(); }
    /// Elements that tokens fill.
    std::int64_t elements(int tensor) const { return m_tensors.elements[std::size_t(tensor)]; }
    std::int64_t width(int tensor) const { return node(tensor).shape.back(); }
    int rows(int tensor) const { return int(elements(tensor) / width(tensor)); }
    bool isHead() const { return operation(size() - 1) == "cross_entropy"; }
    bool isEmbedding() const { return m_isEmbedding; }

    /// The values between layers, which the stream holds from the time when they are complete.
    bool isOnStream(int tensor) const { return m_onStream[std::size_t(tensor)]; }
    /// What is added to them.
    bool addsToStream(int tensor) const { return m_addsToStream[std::size_t(tensor)]; }
    kernels::Store storeOf(int tensor) const
    {
        return addsToStream(tensor) ? kernels::Store::Add : kernels::Store::Replace;
    }
    /// Where F makes a value, and where the passes read it: of one on the stream its kept copy, if there is one.
    Place value(int tensor) const;
    Place read(int tensor) const;
    std::optional<Slice> kept(int tensor) const;
    /// A tensor of an operation's own.
    Slice own(int tensor, std::string_view name) const;
    /// The route node by which a value in the slots of experts was sent there.
    int route(int tensor) const;

    bool needsGradient(int tensor) const;
    Place gradient(int tensor) const;
    std::optional<Slice> keptGradient(int tensor) const;
    Slice workspace(std::string_view name, std::int64_t elements) const;
    /// In which a stage with this layer has the stream's gradient: W reads it.
    Slice embeddingGradient() const;

    ParameterPlace parameter(int tensor) const;
    /// Of an operand that may be absent.
    ParameterPlace optionalParameter(int tensor, std::size_t operand) const
    {
        return hasOperand(tensor, operand) ? parameter(this->operand(tensor, operand)) : ParameterPlace();
    }

    /// A product whose result plain attention reads: its gradient, and those of the two others, are rows side by side.
    bool isPartOfPlain(int tensor) const;
    /// Of activations between two products: the products do them.
    bool isFused(int activation) const;
    /// Product to a picture's patches, of which the result lies behind a class token.
    bool isBehindClassToken(int tensor) const;
    /// A norm of which only every sequence's first row is read, by the node that is returned; -1: all of it is.
    int firstRowOf(int norm) const;

    bool fuses = true; ///< for tests

private:
    void findOrder(int tensor, std::vector<bool>& seen);
    void findStream();
    [[noreturn]] void fault(int tensor, const char* what) const;
    Slice borrowed(int tensor) const;

    TensorGraph m_graph;
    int m_layer;
    bool m_plainAttention, m_isEmbedding = false;
    const StageLayout* m_layout;
    const ParameterLayout* m_parameters;
    LayerTensors m_tensors;
    std::vector<std::vector<int>> m_readers;
    std::vector<int> m_order;
    std::vector<bool> m_onStream, m_addsToStream;
};

} // namespace pipewright
