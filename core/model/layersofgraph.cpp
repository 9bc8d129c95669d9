// SPDX-License-Identifier: GPL-3.0-or-later
// One walk over the nodes for each list. A tensor that several operations read is kept once, until its last reader.
#include "core/model/layersofgraph.h"

#include "core/model/layeroperations.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pipewright {

namespace {

class LayerWriter {
public:
    LayerWriter(const TensorGraph& graph, std::int64_t tokensOver, Layer& layer)
        : m_graph(graph), m_tokensOver(tokensOver), m_layer(layer), m_elements(graph)
    {
    }

    LayerTensors write()
    {
        for (int t = 0; t < m_graph.size(); ++t) {
            const Node& node = m_graph.node(t);
            if (node.leaf == Leaf::Parameter)
                addParameter(node);
            if (node.narrow)
                m_layer.narrowParameters += m_graph.node(node.operands[1]).count();
            if (node.leaf != Leaf::None)
                continue;
            keep(t);
            addWorkspace(t);
        }
        addWork();
        keepStream();
        if (const Node& last = m_graph.nodes().back(); operationOf(last).name == "hand_over")
            m_layer.outputBytes = divided(last.operands[0], m_elements(last.operands[0])) * m_graph.bytesPerElement;
        for (const auto& [kept, saved] : m_keptValues)
            m_kept.values.emplace(kept.first, m_layer.saved[saved].name);
        for (int t = 0; t < m_graph.size(); ++t)
            m_kept.elements.push_back(m_elements(t));
        return std::move(m_kept);
    }

private:
    static const Operation& operationOf(const Node& node) { return operations()[std::size_t(node.operation)]; }

    std::int64_t divided(int tensor, std::int64_t count) const
    {
        return m_graph.node(tensor).betweenProducts ? count / m_tokensOver : count;
    }

    // --- parameters

    void addParameter(const Node& node)
    {
        m_layer.parameters += node.count();
        const bool isBias = node.part.ends_with(".bias");
        const std::int64_t columns = node.shape.back(), rows = node.count() / columns;
        const auto same = std::find_if(m_layer.parameterTensors.begin(), m_layer.parameterTensors.end(),
                                       [&](const LayerParameter& parameter) { return parameter.name == node.part; });
        if (same == m_layer.parameterTensors.end()) {
            m_layer.parameterTensors.push_back({node.part, rows, columns, node.start});
            return;
        }
        (isBias ? same->columns : same->rows) += isBias ? columns : rows; // products that are computed as one
    }

    // --- work

    void addWork()
    {
        m_layer.products = productsOf(m_graph);
        m_layer.attentions = attentionsOf(m_graph);
        m_layer.moved = movedBytes(m_graph, m_tokensOver);
        for (const AttentionSize& size : m_layer.attentions) {
            m_layer.forwardFlops += size.flops();
            m_layer.inputGradFlops += size.backwardFlops();
        }
        for (const ProductSize& size : m_layer.products) {
            const double flops = size.flops();
            const double perWidth =
                flops / static_cast<double>(std::max<std::int64_t>(1, std::min(size.inner, size.columns)));
            m_layer.forwardFlops += flops;
            m_layer.forwardFlopsPerWidth += perWidth;
            m_layer.inputGradFlops += size.inputGrad ? flops : 0;
            m_layer.inputGradFlopsPerWidth += size.inputGrad ? perWidth : 0;
            m_layer.weightGradFlops += size.weightGrad ? flops : 0;
            m_layer.weightGradFlopsPerWidth += size.weightGrad ? perWidth : 0;
        }
    }

    // --- what the forward keeps

    void keep(int tensor)
    {
        const Node& node = m_graph.node(tensor);
        const Operation& operation = operationOf(node);
        const bool narrow = node.narrow && m_graph.keepsNarrow;
        for (const KeptForm& form : operation.keeps) {
            const std::string name = node.part + "." + std::string(form.name);
            switch (form.what) {
            case KeptForm::What::Operand:
                keepValue(node.operands[std::size_t(form.operand)], form, name, narrow);
                break;
            case KeptForm::What::Result: keepValue(tensor, form, name, false); break;
            case KeptForm::What::ResultGrad: keepGradient(tensor, name, narrow); break;
            }
        }
        // A kernel that goes over the scores tile by tile reads its result again; where the projection keeps a copy of
        // its own, nobody else holds it.
        if (m_graph.keepsNarrow && operation.work == Work::Attention && node.attribute("stored") == 0)
            m_layer.saved.push_back(
                {node.part + ".output", divided(tensor, m_elements(tensor)), m_graph.bytesPerElement});
        if (!operation.own)
            return;
        for (SavedTensor own : operation.own(m_graph, node)) {
            own.name = node.part + "." + own.name;
            own.elements = divided(tensor, own.elements);
            m_layer.saved.push_back(std::move(own));
        }
    }

    void keepValue(int tensor, const KeptForm& form, const std::string& name, bool narrow)
    {
        if (m_graph.node(tensor).leaf == Leaf::Parameter || (form.unlessRemade && isRemade(m_graph, tensor)))
            return;
        if (const auto known = m_keptValues.find({tensor, narrow}); known != m_keptValues.end()) {
            if (form.lifetime == Lifetime::UntilWeightGrad)
                m_layer.saved[known->second].lifetime = form.lifetime;
            return;
        }
        m_keptValues.emplace(std::pair(tensor, narrow), m_layer.saved.size());
        m_layer.saved.push_back({name, divided(tensor, m_elements(tensor)),
                                 form.bytesPerElement > 0 ? form.bytesPerElement : m_graph.bytesPerElement,
                                 form.lifetime, false, form.readByLaterPieces,
                                 narrow ? bytesOf32(m_graph.products) : 0});
    }

    /// The last tensor whose gradient is this one's too.
    int sameGradient(int tensor) const
    {
        for (int user = tensor + 1; user < m_graph.size(); ++user) {
            const Node& node = m_graph.node(user);
            if (node.leaf == Leaf::None && operationOf(node).passesGradient && node.operands[0] == tensor)
                return sameGradient(user);
        }
        return tensor;
    }

    void keepGradient(int tensor, const std::string& name, bool narrow)
    {
        const int of = sameGradient(tensor);
        if (const auto known = m_keptGradients.find({of, narrow}); known != m_keptGradients.end()) {
            m_kept.gradients.emplace(tensor, known->second);
            return;
        }
        const std::int64_t count = divided(of, m_elements(of));
        const auto same = std::find_if(m_layer.saved.begin(), m_layer.saved.end(),
                                       [&](const SavedTensor& saved) { return saved.name == name; });
        LayerTensors::Gradient kept{name, 0};
        if (same == m_layer.saved.end()) {
            m_layer.saved.push_back({name, count, m_graph.bytesPerElement, Lifetime::FromInputGrad, false, false,
                                     narrow ? bytesOf32(m_graph.products) : 0});
        } else { // of products that are computed as one
            kept.first = same->elements;
            same->elements += count;
        }
        m_kept.gradients.emplace(tensor, kept);
        m_keptGradients.emplace(std::pair(of, narrow), std::move(kept));
    }

    /// A layer that ends in a loss has no output: the values that arrive stay in a tensor that it keeps, its own if
    /// none of its operations keeps them.
    void keepStream()
    {
        if (operationOf(m_graph.nodes().back()).name != "cross_entropy" || m_graph.node(0).leaf != Leaf::Received
            || m_keptValues.contains({0, false}))
            return;
        m_layer.saved.push_back({"head.stream", divided(0, m_elements(0)), m_graph.bytesPerElement});
    }

    // --- workspace of the input gradient

    void addWorkspace(int tensor)
    {
        const Node& node = m_graph.node(tensor);
        switch (operationOf(node).work) {
        case Work::None:
        case Work::Traffic:
            if (const std::string_view name = operationOf(node).resultGrad; !name.empty())
                need(name, node.count());
            return;
        case Work::Attention: {
            const std::int64_t queries =
                m_graph.node(node.operands[0]).shape[0] * m_graph.node(node.operands[0]).shape[1];
            need("d.scores",
                 static_cast<std::int64_t>(node.attribute("heads")) * queries
                     * (node.attribute("stored") > 0 ? keysOf(m_graph, node) : 1),
                 true);
            return;
        }
        case Work::Product: break;
        }
        // The gradient of what the product reads, unless it takes the place of another kept gradient.
        const int read = node.operands[0];
        if (needsGradient(m_graph, read) && !takesKeptGradientsPlace(read))
            need(m_elements.inSlots(read) ? "d.experts" : "d.ln", m_elements(read));
    }

    /// Whether activations lie between a value and the product whose result's gradient is kept in the same size.
    bool takesKeptGradientsPlace(int tensor) const
    {
        return m_graph.node(tensor).leaf == Leaf::None && operationOf(m_graph.node(tensor)).isElementwise();
    }

    // Parts of a layer run one after the other, so those that name the same tensor share it.
    void need(std::string_view name, std::int64_t count, bool ofSums = false)
    {
        const auto same = std::find_if(m_layer.workspace.begin(), m_layer.workspace.end(),
                                       [&](const WorkspaceTensor& one) { return one.name == name; });
        if (same == m_layer.workspace.end())
            m_layer.workspace.push_back({std::string(name), count, ofSums});
        else
            same->elements = std::max(same->elements, count);
    }

    const TensorGraph& m_graph;
    std::int64_t m_tokensOver;
    Layer& m_layer;
    FilledElements m_elements;
    std::map<std::pair<int, bool>, std::size_t> m_keptValues; ///< by tensor, and whether in the products' type
    std::map<std::pair<int, bool>, LayerTensors::Gradient> m_keptGradients; ///< likewise
    LayerTensors m_kept;
};

} // namespace

LayerTensors describeLayer(const TensorGraph& graph, std::int64_t tokensOver, Layer& layer)
{
    return LayerWriter(graph, tokensOver, layer).write();
}

} // namespace pipewright
