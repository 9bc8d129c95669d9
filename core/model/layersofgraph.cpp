// SPDX-License-Identifier: GPL-3.0-or-later
// One walk over the nodes for each list. A tensor that several operations read is kept once, until its last reader.
#include "core/model/layersofgraph.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pipewright {

namespace {

class LayerWriter {
public:
    LayerWriter(const TensorGraph& graph, std::int64_t tokensOver, Layer& layer)
        : m_graph(graph), m_tokensOver(tokensOver), m_layer(layer)
    {
        for (const Node& node : graph.nodes())
            m_copies.push_back(copiesIn(node));
    }

    LayerTensors write()
    {
        for (int t = 0; t < m_graph.size(); ++t) {
            const Node& node = m_graph.node(t);
            if (node.leaf == Leaf::Parameter)
                addParameter(node);
            if (node.leaf != Leaf::None)
                continue;
            addWork(t);
            keep(t);
            addWorkspace(t);
        }
        addProducts();
        keepStream();
        if (const Node& last = m_graph.nodes().back(); operationOf(last).name == "hand_over")
            m_layer.outputBytes = divided(last.operands[0], elements(last.operands[0])) * m_graph.bytesPerElement;
        for (const auto& [tensor, saved] : m_keptValues)
            m_kept.values.emplace(tensor, m_layer.saved[saved].name);
        for (int t = 0; t < m_graph.size(); ++t)
            m_kept.elements.push_back(elements(t));
        return std::move(m_kept);
    }

private:
    static const Operation& operationOf(const Node& node) { return operations()[std::size_t(node.operation)]; }

    /// Copies of tokens that a value in the slots of experts stands for; 0: it is in none.
    std::int64_t copiesIn(const Node& node) const
    {
        if (node.leaf != Leaf::None)
            return 0;
        std::int64_t copies = 0;
        switch (operationOf(node).copies) {
        case Copies::Made: return copiesOf(m_graph.node(node.operands[0]));
        case Copies::Summed: return 0;
        case Copies::AsRead:
            for (const int operand : node.operands)
                copies = std::max(copies, m_copies[std::size_t(operand)]);
        }
        return copies;
    }
    /// Elements that tokens fill: experts have more slots where tokens do not share out evenly.
    std::int64_t elements(int tensor) const
    {
        const Node& node = m_graph.node(tensor);
        const std::int64_t copies = m_copies[std::size_t(tensor)];
        return copies > 0 ? copies * node.shape.back() : node.count();
    }
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

    bool needsGradient(int tensor) const
    {
        switch (m_graph.node(tensor).leaf) {
        case Leaf::Input:
        case Leaf::Parameter: return false;
        case Leaf::None:
        case Leaf::Received: return true;
        }
        return true;
    }

    void addWork(int tensor)
    {
        const Node& node = m_graph.node(tensor);
        switch (operationOf(node).work) {
        case Work::None:
        case Work::Traffic: return;
        case Work::Attention: { // two products for each of the forward's, and no weights
            const double flops = forwardFlops(m_graph, tensor);
            m_layer.forwardFlops += flops;
            m_layer.inputGradFlops += 2 * flops;
            return;
        }
        case Work::Product: break;
        }
        // Products of one part that read the same tensor are one, as wide as all of them.
        ProductSize& size = m_products[{node.part, node.operands[0]}];
        size.inner = m_graph.node(node.operands[0]).shape.back();
        size.columns += node.shape.back();
        size.rows = elements(tensor) / node.shape.back();
        size.inputGrad = needsGradient(node.operands[0]);
        size.weightGrad = m_graph.node(node.operands[1]).leaf == Leaf::Parameter;
    }

    struct ProductSize {
        std::int64_t rows = 0, inner = 0, columns = 0;
        bool inputGrad = false, weightGrad = false;
    };

    void addProducts()
    {
        for (const auto& [key, size] : m_products) {
            const double flops = 2.0 * static_cast<double>(size.rows) * static_cast<double>(size.inner)
                                 * static_cast<double>(size.columns);
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
        for (const KeptForm& form : operation.keeps) {
            const std::string name = node.part + "." + std::string(form.name);
            switch (form.what) {
            case KeptForm::What::Operand: keepValue(node.operands[std::size_t(form.operand)], form, name); break;
            case KeptForm::What::Result: keepValue(tensor, form, name); break;
            case KeptForm::What::ResultGrad: keepGradient(tensor, name); break;
            }
        }
        if (!operation.own)
            return;
        for (SavedTensor own : operation.own(m_graph, node)) {
            own.name = node.part + "." + own.name;
            own.elements = divided(tensor, own.elements);
            m_layer.saved.push_back(std::move(own));
        }
    }

    /// Whether I makes a value again instead of reading it: from what its own, cheap operation keeps.
    bool isRemade(int tensor) const
    {
        const Node& node = m_graph.node(tensor);
        return node.leaf == Leaf::None && node.operands.size() == 1 && operationOf(node).isElementwise()
               && operationOf(node).keeps.front().what == KeptForm::What::Operand;
    }

    void keepValue(int tensor, const KeptForm& form, const std::string& name)
    {
        if (m_graph.node(tensor).leaf == Leaf::Parameter || (form.unlessRemade && isRemade(tensor)))
            return;
        if (const auto known = m_keptValues.find(tensor); known != m_keptValues.end()) {
            if (form.lifetime == Lifetime::UntilWeightGrad)
                m_layer.saved[known->second].lifetime = form.lifetime;
            return;
        }
        m_keptValues.emplace(tensor, m_layer.saved.size());
        m_layer.saved.push_back({name, divided(tensor, elements(tensor)),
                                 form.bytesPerElement > 0 ? form.bytesPerElement : m_graph.bytesPerElement,
                                 form.lifetime, false, form.readByLaterPieces});
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

    void keepGradient(int tensor, const std::string& name)
    {
        const int of = sameGradient(tensor);
        if (const auto known = m_keptGradients.find(of); known != m_keptGradients.end()) {
            m_kept.gradients.emplace(tensor, known->second);
            return;
        }
        const std::int64_t count = divided(of, elements(of));
        const auto same = std::find_if(m_layer.saved.begin(), m_layer.saved.end(),
                                       [&](const SavedTensor& saved) { return saved.name == name; });
        LayerTensors::Gradient kept{name, 0};
        if (same == m_layer.saved.end()) {
            m_layer.saved.push_back({name, count, m_graph.bytesPerElement, Lifetime::FromInputGrad});
        } else { // of products that are computed as one
            kept.first = same->elements;
            same->elements += count;
        }
        m_kept.gradients.emplace(tensor, kept);
        m_keptGradients.emplace(of, std::move(kept));
    }

    /// A layer that ends in a loss has no output: the values that arrive stay in a tensor that it keeps, its own if
    /// none of its operations keeps them.
    void keepStream()
    {
        if (operationOf(m_graph.nodes().back()).name != "cross_entropy" || m_graph.node(0).leaf != Leaf::Received
            || m_keptValues.contains(0))
            return;
        m_layer.saved.push_back({"head.stream", divided(0, elements(0)), m_graph.bytesPerElement});
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
        if (needsGradient(read) && !takesKeptGradientsPlace(read))
            need(m_copies[std::size_t(read)] > 0 ? "d.experts" : "d.ln", elements(read));
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
    std::vector<std::int64_t> m_copies; ///< per tensor
    std::map<std::pair<std::string, int>, ProductSize> m_products;
    std::map<int, std::size_t> m_keptValues;
    std::map<int, LayerTensors::Gradient> m_keptGradients;
    LayerTensors m_kept;
};

} // namespace

LayerTensors describeLayer(const TensorGraph& graph, std::int64_t tokensOver, Layer& layer)
{
    return LayerWriter(graph, tokensOver, layer).write();
}

} // namespace pipewright
