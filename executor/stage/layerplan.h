// SPDX-License-Identifier: GPL-3.0-or-later
// Where the values of a layer's graph and their gradients lie: in the stream, in the tensors that the layer keeps, or
// in the workspace of its input gradient. A gradient takes the place of another one wherever the operation between them
// works in place, so that W finds it where it is kept. Built once per layer; O(tensors x kept tensors).
#pragma once

#include "core/model/layersofgraph.h"
#include "executor/stage/nodeplan.h"
#include "executor/stage/parameterlayout.h"

#include <optional>
#include <string_view>
#include <vector>

namespace pipewright {

class LayerPlan final : public NodePlan {
public:
    /// The graph of the workload's layer number `layer`. `plainAttention`: attention.h's kernels, whose gradients of
    /// queries, keys and values are rows side by side.
    LayerPlan(TensorGraph graph, int layer, bool plainAttention, const StageLayout& layout,
              const ParameterLayout& parameters);

    bool isAlone() const override { return false; }
    const Node& node(int tensor) const override { return m_graph.node(tensor); }
    int operand(int tensor, std::size_t index) const override { return node(tensor).operands[index]; }
    bool hasOperand(int tensor, std::size_t index) const override { return index < node(tensor).operands.size(); }
    std::string_view operation(int tensor) const override;
    const Shape& shape(int tensor) const override { return node(tensor).shape; }
    bool isBytes(int tensor) const override { return node(tensor).leaf == Leaf::Input; }
    std::int64_t elements(int tensor) const override { return m_tensors.elements[std::size_t(tensor)]; }
    int size() const { return m_graph.size(); }
    /// The nodes that compute, in the order of F: operands from the last to the first, so that keys are assembled
    /// before queries take their memory.
    const std::vector<int>& order() const { return m_order; }
    bool isHead() const override { return operation(size() - 1) == "cross_entropy"; }
    bool isEmbedding() const { return m_isEmbedding; }

    /// The values between layers, which the stream holds from the time when they are complete.
    bool isOnStream(int tensor) const override { return m_onStream[std::size_t(tensor)]; }
    /// What is added to them.
    bool addsToStream(int tensor) const override { return m_addsToStream[std::size_t(tensor)]; }
    Place value(int tensor) const override;
    /// Of a value on the stream: its kept copy, if there is one.
    Place read(int tensor) const override;
    /// No other node reads it.
    Place changed(int operand) const override { return value(operand); }
    std::optional<Slice> kept(int tensor) const;
    Place own(int tensor, std::string_view name, std::int64_t elements) const override;
    Place keptResult(int tensor, std::string_view name) const override { return own(tensor, name, elements(tensor)); }
    int route(int tensor) const override;

    bool needsGradient(int tensor) const override;
    Place gradient(int tensor) const override;
    std::optional<Slice> keptGradient(int tensor) const;
    Place workspace(std::string_view name, std::int64_t elements) const override;
    Place sequenceGradient(std::int64_t elements) const override
    {
        return workspace("attention.sequenceGradient", elements);
    }
    /// In which a stage with this layer has the stream's gradient: W reads it.
    Slice embeddingGradient() const;
    Place tableGradient(int) const override { return {.slice = embeddingGradient()}; }

    ParameterPlace parameter(int tensor) const override;

    int reader(int tensor) const override;
    bool isActivation(int tensor) const override;
    bool isNorm(int tensor) const override;
    bool isPartOfPlain(int tensor) const override;
    bool isFused(int activation) const override;
    bool isBehindClassToken(int tensor) const override;
    int firstRowOf(int norm) const override;

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
