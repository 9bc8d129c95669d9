// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/layeroperations.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace pipewright {

namespace {

const Operation& operationOf(const Node& node)
{
    return operations()[static_cast<std::size_t>(node.operation)];
}

class MovedWriter {
public:
    MovedWriter(const TensorGraph& graph, std::int64_t tokensOver)
        : m_graph(graph), m_tokensOver(tokensOver), m_elements(graph), m_consumers(graph.consumers())
    {
    }

    MovedByKind write()
    {
        for (int t = 0; t < m_graph.size(); ++t) {
            for (int sum = 1; needsGradient(m_graph, t) && sum < readers(t); ++sum)
                moved(Movement::Elementwise).inputGrad.add(3 * of(t));
            const Node& node = m_graph.node(t);
            if (node.leaf != Leaf::None)
                continue;
            switch (operationOf(node).work) {
            case Work::None: break;
            case Work::Product: addCasts(t); break;
            case Work::Attention: addRotation(node); break;
            case Work::Traffic: addTraffic(t); break;
            }
        }
        return m_moved;
    }

private:
    Movements& moved(Movement movement) { return m_moved[static_cast<std::size_t>(movement)]; }

    /// Bytes of a tensor. What a router makes is a number per token and expert, not one per slot.
    double of(int tensor) const
    {
        const Node& node = m_graph.node(tensor);
        std::int64_t count = m_elements(tensor);
        if (node.betweenProducts)
            count /= m_tokensOver;
        if (node.leaf == Leaf::None && operationOf(node).name == "route")
            count /= node.shape.back();
        return static_cast<double>(count) * m_graph.bytesPerElement;
    }

    /// Products of one part that read the same tensor are one reader. At least 1.
    int readers(int tensor) const
    {
        std::set<std::string> parts;
        int others = 0;
        for (const int user : m_consumers[static_cast<std::size_t>(tensor)])
            if (const Node& node = m_graph.node(user); operationOf(node).work == Work::Product)
                parts.insert(node.part);
            else
                ++others;
        return std::max(1, others + static_cast<int>(parts.size()));
    }

    /// Part of the kernel of the operations that read it, so that it never is in memory.
    bool isFused(int tensor) const
    {
        const std::vector<int>& users = m_consumers[static_cast<std::size_t>(tensor)];
        return isRemade(m_graph, tensor) && std::all_of(users.begin(), users.end(), [&](int user) {
                   return operationOf(m_graph.node(user)).isElementwise();
               });
    }

    /// Read wide, and written narrow in two copies. What makes a value element by element writes it narrow at once.
    /// The weights of frameworks that hold narrow ones are cast by the update.
    void addCasts(int product)
    {
        const Node& node = m_graph.node(product);
        if (!node.narrow)
            return;
        const auto cast = [&](std::int64_t count) {
            return castBytes(count, m_graph.bytesPerElement, m_graph.products);
        };
        const auto count = [&](int tensor) {
            return m_graph.node(tensor).betweenProducts ? m_elements(tensor) / m_tokensOver : m_elements(tensor);
        };
        Movements& casts = moved(Movement::Cast);
        const int read = node.operands[0];
        if (m_castOperands.insert(read).second && !isMadeByElements(read))
            casts.forward.add(cast(count(read)));
        const std::vector<int>& users = m_consumers[static_cast<std::size_t>(product)];
        if (!std::all_of(users.begin(), users.end(),
                         [&](int user) { return operationOf(m_graph.node(user)).isElementwise(); }))
            casts.inputGrad.add(cast(count(product)));
        if (!m_graph.keepsNarrow) {
            const std::int64_t weights = m_graph.node(node.operands[1]).count();
            casts.forward.add(cast(weights));
            casts.inputGrad.add(cast(weights));
            casts.weightGrad.add(cast(count(read)));
        }
    }

    /// By a norm, an activation or a product of elements.
    bool isMadeByElements(int tensor) const
    {
        const Node& node = m_graph.node(tensor);
        return node.leaf == Leaf::None && operationOf(node).work == Work::Traffic
               && operationOf(node).copies == Copies::AsRead;
    }

    void addRotation(const Node& attention)
    {
        if (attention.attribute("rotary_base") <= 0)
            return;
        for (const int rotated : {attention.operands[0], attention.operands[1]}) {
            moved(Movement::Elementwise).forward.add(2 * of(rotated));
            moved(Movement::Elementwise).inputGrad.add(2 * of(rotated));
        }
    }

    void addTraffic(int tensor)
    {
        const Node& node = m_graph.node(tensor);
        const Operation& operation = operationOf(node);
        if (node.shape.empty()) { // the largest and the sum are found, then the gradient is written, and scaled by I
            moved(Movement::Loss).forward.add(3 * of(node.operands[0]));
            moved(Movement::Loss).inputGrad.add(2 * of(node.operands[0]));
            return;
        }
        switch (operation.copies) {
        case Copies::Made: // of operand 1; summed again by I
            moved(Movement::Permutation).forward.add(2 * of(tensor));
            moved(Movement::Permutation).inputGrad.add(of(tensor) + of(node.operands[1]));
            return;
        case Copies::Summed:
            moved(Movement::Permutation).forward.add(of(node.operands[1]) + of(tensor));
            moved(Movement::Permutation).inputGrad.add(2 * of(node.operands[1]));
            return;
        case Copies::AsRead: break;
        }
        Movements& elementwise = moved(Movement::Elementwise);
        if (gathersRows(node)) { // reads as much as it writes, and adds as much to the table's gradient
            elementwise.forward.add(2 * of(tensor));
            elementwise.weightGrad.add(2 * of(tensor));
            return;
        }
        if (isFused(tensor)) {
            addOperands(tensor);
            return;
        }
        elementwise.forward.add(of(tensor));
        if (!operation.passesGradient)
            elementwise.inputGrad.add(of(tensor));
        addOperands(tensor);
    }

    /// What a kernel reads besides the result's gradient, and writes besides the result.
    void addOperands(int tensor)
    {
        const Node& node = m_graph.node(tensor);
        const Operation& operation = operationOf(node);
        double &forward = moved(Movement::Elementwise).forward.bytes,
               &inputGrad = moved(Movement::Elementwise).inputGrad.bytes;
        for (const int operand : node.operands) {
            if (m_graph.node(operand).leaf == Leaf::Parameter || isFused(operand))
                continue;
            forward += of(operand);
            if (needsGradient(m_graph, operand) && !operation.passesGradient)
                inputGrad += of(operand);
        }
        for (const KeptForm& kept : operation.keeps) {
            const int read =
                kept.what == KeptForm::What::Operand ? node.operands[static_cast<std::size_t>(kept.operand)] : tensor;
            if (kept.lifetime == Lifetime::UntilInputGrad && m_graph.node(read).leaf != Leaf::Parameter
                && !(kept.unlessRemade && isRemade(m_graph, read)))
                inputGrad += of(read);
        }
    }

    /// Of a table of parameters.
    bool gathersRows(const Node& node) const
    {
        return m_graph.node(node.operands[0]).leaf == Leaf::Input && node.operands.size() > 1
               && m_graph.node(node.operands[1]).leaf == Leaf::Parameter;
    }

    const TensorGraph& m_graph;
    std::int64_t m_tokensOver;
    FilledElements m_elements;
    std::vector<std::vector<int>> m_consumers;
    std::set<int> m_castOperands;
    MovedByKind m_moved{};
};

} // namespace

FilledElements::FilledElements(const TensorGraph& graph) : m_graph(graph)
{
    for (const Node& node : graph.nodes())
        m_copies.push_back(copiesIn(node));
}

std::int64_t FilledElements::copiesIn(const Node& node) const
{
    if (node.leaf != Leaf::None)
        return 0;
    std::int64_t copies = 0;
    switch (operationOf(node).copies) {
    case Copies::Made: { // more than the mean at a member that tokens choose often
        const Node& route = m_graph.node(node.operands[0]);
        const double spread = route.attribute("spread") > 0 ? route.attribute("spread") : 1;
        return std::llround(static_cast<double>(copiesOf(route)) * spread / node.tokensOver);
    }
    case Copies::Summed: return 0;
    case Copies::AsRead:
        for (const int operand : node.operands)
            copies = std::max(copies, m_copies[static_cast<std::size_t>(operand)]);
    }
    return copies;
}

std::int64_t FilledElements::operator()(int tensor) const
{
    const Node& node = m_graph.node(tensor);
    const std::int64_t copies = m_copies[static_cast<std::size_t>(tensor)];
    return copies > 0 ? copies * node.shape.back() : node.count() / node.tokensOver;
}

bool needsGradient(const TensorGraph& graph, int tensor)
{
    switch (graph.node(tensor).leaf) {
    case Leaf::Input:
    case Leaf::Parameter: return false;
    case Leaf::None:
    case Leaf::Received: return true;
    }
    return true;
}

bool isRemade(const TensorGraph& graph, int tensor)
{
    const Node& node = graph.node(tensor);
    return node.leaf == Leaf::None && node.operands.size() == 1 && operationOf(node).isElementwise()
           && operationOf(node).keeps.front().what == KeptForm::What::Operand;
}

std::vector<ProductSize> productsOf(const TensorGraph& graph)
{
    const FilledElements elements(graph);
    std::map<std::pair<std::string, int>, ProductSize> products;
    for (int t = 0; t < graph.size(); ++t) {
        const Node& node = graph.node(t);
        if (node.leaf != Leaf::None || operationOf(node).work != Work::Product)
            continue;
        ProductSize& size = products[{node.part, node.operands[0]}];
        const Node& weight = graph.node(node.operands[1]);
        size.inner = graph.node(node.operands[0]).shape.back();
        size.columns += node.shape.back();
        size.rows = elements(t) / node.shape.back();
        size.experts = elements.inSlots(t) ? weight.shape.front() : 0;
        size.narrow = node.narrow;
        size.inputGrad = needsGradient(graph, node.operands[0]);
        size.weightGrad = weight.leaf == Leaf::Parameter;
    }
    std::vector<ProductSize> sizes;
    for (const auto& [key, size] : products)
        sizes.push_back(size);
    return sizes;
}

std::vector<AttentionSize> attentionsOf(const TensorGraph& graph)
{
    std::vector<AttentionSize> sizes;
    for (const Node& node : graph.nodes()) {
        if (node.leaf == Leaf::None && operationOf(node).work == Work::Attention)
            sizes.push_back(attentionSizeOf(graph, node));
    }
    return sizes;
}

MovedByKind movedBytes(const TensorGraph& graph, std::int64_t tokensOver)
{
    return MovedWriter(graph, tokensOver).write();
}

} // namespace pipewright
