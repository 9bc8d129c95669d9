// SPDX-License-Identifier: GPL-3.0-or-later
// Builds graphs node by node and infers every shape by binding the signature's letters to the operands' dimensions.
// O(operands) per node.
#include "core/model/tensorgraph.h"

#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr double mostElements = 1e15;

/// Binds the letters of one operand to its shape.
void bindLetters(const OperandForm& form, const Shape& shape, bool& starBound, LetterSizes& bound,
                 const std::string& where, std::string_view operandName)
{
    const std::size_t letters = form.letters.size() - (form.hasStar() ? 1 : 0);
    if (form.hasStar() ? shape.size() < letters : shape.size() != letters)
        throw Error(where, fmt::format("{} has the shape {}", operandName, shapeText(shape)),
                    fmt::format("it takes {}{} dimensions", form.hasStar() ? "at least " : "", letters));
    const std::size_t stars = shape.size() - letters;
    if (form.hasStar()) {
        const Shape leading(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(stars));
        if (starBound && leading != bound.leading)
            throw Error(where,
                        fmt::format("{} has the leading dimensions {}, other operands have {}", operandName,
                                    shapeText(leading), shapeText(bound.leading)),
                        "make them equal");
        bound.leading = leading;
        starBound = true;
    }
    for (std::size_t i = 0; i < letters; ++i) {
        const char letter = form.letters[i + (form.hasStar() ? 1 : 0)];
        const auto [found, isNew] = bound.sizes.emplace(letter, shape[stars + i]);
        if (!isNew && found->second != shape[stars + i])
            throw Error(where,
                        fmt::format("dimension {} of {} is {}, but the same dimension of another operand is {}",
                                    stars + i, operandName, shape[stars + i], found->second),
                        "make the two equal");
    }
}

/// Of the letter that only the result has.
std::int64_t sizeOf(std::string_view formula, const Node& node, const LetterSizes& bound)
{
    const auto cutAt = [](std::string_view& text, char separator) {
        const std::size_t end = std::min(text.find(separator), text.size());
        const std::string_view front = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        return front;
    };
    std::int64_t sum = 0;
    while (!formula.empty()) {
        std::int64_t product = 1;
        for (std::string_view term = cutAt(formula, '+'); !term.empty();) {
            const std::string_view factor = cutAt(term, '*');
            const auto letter = bound.sizes.find(factor.front());
            if (factor.size() == 1 && letter != bound.sizes.end())
                product *= letter->second;
            else if (factor.size() == 1 && factor.front() >= '0' && factor.front() <= '9')
                product *= factor.front() - '0';
            else
                product *= static_cast<std::int64_t>(node.attribute(factor));
        }
        sum += product;
    }
    return sum;
}

void checkAttributes(const Operation& operation, Node& node)
{
    const bool takesHeads = !operation.partsAttribute.empty();
    for (const AttributeForm& form : operation.attributes)
        if (form.required && !node.attributes.contains(form.name))
            throw Error(node.name, fmt::format("{} needs the attribute \"{}\"", operation.name, form.name),
                        fmt::format("add \"{}\": …", form.name));
    for (const auto& [name, value] : node.attributes) {
        const auto form = std::find_if(operation.attributes.begin(), operation.attributes.end(),
                                       [&name = name](const AttributeForm& one) { return one.name == name; });
        if (form == operation.attributes.end())
            throw Error(node.name, fmt::format("{} takes no attribute \"{}\"", operation.name, name), "remove it");
        constexpr double most = 1e9;
        if (form->whole
            && (value < 1 || value > most || value != static_cast<double>(static_cast<std::int64_t>(value))))
            throw Error(node.name, fmt::format("\"{}\" is {}", name, value), "use a whole number from 1");
        if (!(std::abs(value) <= most))
            throw Error(node.name, fmt::format("\"{}\" is {}", name, value), "use a number up to 1e9");
    }
    if (takesHeads)
        node.attributes.try_emplace(operation.partsAttribute, node.attribute("heads"));
}

Shape inferred(const TensorGraph& graph, const Operation& operation, Node& node)
{
    checkAttributes(operation, node);
    const std::size_t most = operation.operands.size();
    const std::size_t least =
        most
        - static_cast<std::size_t>(std::count_if(operation.operands.begin(), operation.operands.end(),
                                                 [](const OperandForm& form) { return form.optional; }));
    if (node.operands.size() < least || node.operands.size() > most)
        throw Error(node.name, fmt::format("{} is given {} operands", operation.name, node.operands.size()),
                    least == most ? fmt::format("it takes {}", most) : fmt::format("it takes {} or {}", least, most));
    LetterSizes bound;
    bool starBound = false;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
        bindLetters(operation.operands[i], graph.node(node.operands[i]).shape, starBound, bound, node.name,
                    graph.node(node.operands[i]).name);
    for (const char letter : operation.wholeLetters) {
        const auto parts = static_cast<std::int64_t>(node.attribute(operation.partsAttribute));
        if (bound.sizes[letter] % parts != 0)
            throw Error(node.name,
                        fmt::format("{} columns do not divide into {} equal parts", bound.sizes[letter], parts),
                        fmt::format("choose a divisor as \"{}\"", operation.partsAttribute));
    }
    if (const std::string_view pair = operation.atLeast;
        !pair.empty() && bound.sizes.at(pair[0]) < bound.sizes.at(pair[1]))
        throw Error(node.name, fmt::format("{} rows for {} of them", bound.sizes.at(pair[0]), bound.sizes.at(pair[1])),
                    "give a row for each");
    Shape shape = operation.result.hasStar() ? bound.leading : Shape{};
    for (const char letter : operation.result.letters)
        if (letter == operation.sizedLetter)
            shape.push_back(sizeOf(operation.sizeFormula, node, bound));
        else if (letter != '*')
            shape.push_back(bound.sizes.at(letter));
    return shape;
}

} // namespace

double Node::elements() const
{
    double product = 1;
    for (const std::int64_t length : shape)
        product *= static_cast<double>(length);
    return product;
}

double Node::attribute(std::string_view of) const
{
    const auto found = attributes.find(of);
    return found == attributes.end() ? 0 : found->second;
}

std::string shapeText(const Shape& shape)
{
    return fmt::format("[{}]", joined(shape, ", "));
}

int TensorGraph::append(Node node)
{
    if (node.name.empty())
        throw Error("graph", "a node without a name", "give every node a name of its own");
    if (m_byName.contains(node.name))
        throw Error(node.name, "two nodes have this name", "give every node a name of its own");
    if (node.shape.size() > maxRank)
        throw Error(node.name, fmt::format("{} dimensions", node.shape.size()), fmt::format("use at most {}", maxRank));
    for (const std::int64_t length : node.shape)
        if (length < 1)
            throw Error(node.name, fmt::format("the shape {} has a dimension without elements", shapeText(node.shape)),
                        "every dimension is 1 or more");
    if (node.elements() > mostElements)
        throw Error(node.name, fmt::format("{:.3g} elements", node.elements()),
                    fmt::format("a tensor has at most {:.0g}", mostElements));
    if (node.segment < 0 || node.segment >= maxSegments)
        throw Error(node.name, fmt::format("segment {}", node.segment),
                    fmt::format("number segments from 0, at most {}", maxSegments));
    m_byName.emplace(node.name, size());
    m_nodes.push_back(std::move(node));
    return size() - 1;
}

int TensorGraph::addLeaf(std::string_view leafName, Leaf leaf, Shape shape, int segment)
{
    Node node;
    node.name = leafName;
    node.leaf = leaf;
    node.shape = std::move(shape);
    node.segment = segment;
    return append(std::move(node));
}

int TensorGraph::addInput(std::string_view leafName, Shape shape, int segment)
{
    return addLeaf(leafName, Leaf::Input, std::move(shape), segment);
}

int TensorGraph::addReceived(std::string_view leafName, Shape shape, int segment)
{
    return addLeaf(leafName, Leaf::Received, std::move(shape), segment);
}

int TensorGraph::addParameter(std::string_view leafName, Shape shape, int segment)
{
    return addLeaf(leafName, Leaf::Parameter, std::move(shape), segment);
}

int TensorGraph::add(std::string_view nodeName, std::string_view operation, std::vector<int> operands,
                     Attributes attributes, int segment)
{
    Node node;
    node.name = nodeName;
    node.operation = findOperation(operation);
    node.operands = std::move(operands);
    node.attributes = std::move(attributes);
    node.segment = segment;
    if (node.operation < 0)
        throw Error(node.name, fmt::format("the operation \"{}\" is unknown", operation),
                    fmt::format("known: {}", joined(operationNames(), ", ")));
    for (const int operand : node.operands)
        if (operand < 0 || operand >= size())
            throw Error(node.name, "an operand comes later than its use, or never",
                        "list nodes in an order in which they can be computed");
    node.shape = inferred(*this, operations()[node.operation], node);
    return append(std::move(node));
}

void TensorGraph::describe(int tensor, std::string part, bool betweenProducts)
{
    m_nodes[static_cast<std::size_t>(tensor)].part = std::move(part);
    m_nodes[static_cast<std::size_t>(tensor)].betweenProducts = betweenProducts;
}

void TensorGraph::describeParameter(int tensor, std::string part, LayerParameter::Start start, bool trained)
{
    Node& node = m_nodes[static_cast<std::size_t>(tensor)];
    node.part = std::move(part);
    node.start = start;
    node.trained = trained;
}

int TensorGraph::find(std::string_view nodeName) const
{
    const auto found = m_byName.find(nodeName);
    return found == m_byName.end() ? -1 : found->second;
}

int TensorGraph::segments() const
{
    int highest = 0;
    for (const Node& node : m_nodes)
        highest = std::max(highest, node.segment);
    return highest + 1;
}

std::vector<std::vector<int>> TensorGraph::consumers() const
{
    std::vector<std::vector<int>> users(m_nodes.size());
    for (int i = 0; i < size(); ++i)
        for (const int operand : node(i).operands)
            if (auto& list = users[operand]; list.empty() || list.back() != i)
                list.push_back(i);
    return users;
}

Diagnostics TensorGraph::check() const
{
    if (m_nodes.empty())
        return {{Severity::Error, "graph", "there are no nodes", "list inputs, parameters and operations"}};
    Diagnostics found;
    const Node& last = m_nodes.back();
    if (last.leaf != Leaf::None || !last.shape.empty())
        found.push_back({Severity::Error, last.name,
                         fmt::format("the last node has the shape {}, but it is the loss", shapeText(last.shape)),
                         "end with a scalar: sum or cross_entropy"});
    const auto users = consumers();
    for (int i = 0; i + 1 < size(); ++i)
        if (users[i].empty())
            found.push_back({Severity::Error, node(i).name, "nothing uses this tensor",
                             "remove it, or use it on the way to the loss"});
    return found;
}

LetterSizes letterSizes(const TensorGraph& graph, const Node& node)
{
    const Operation& operation = operations()[node.operation];
    LetterSizes bound;
    bool starBound = false;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
        bindLetters(operation.operands[i], graph.node(node.operands[i]).shape, starBound, bound, node.name,
                    graph.node(node.operands[i]).name);
    if (operation.sizedLetter != 0)
        bound.sizes[operation.sizedLetter] = sizeOf(operation.sizeFormula, node, bound);
    return bound;
}

std::int64_t keysOf(const TensorGraph& graph, const Node& attention)
{
    const auto stated = static_cast<std::int64_t>(attention.attribute("keys"));
    return stated > 0 ? stated : graph.node(attention.operands[1]).shape[1];
}

AttentionSize attentionSizeOf(const TensorGraph& graph, const Node& attention)
{
    const Shape& query = graph.node(attention.operands[0]).shape;
    const auto whole = [&](std::string_view name) { return static_cast<std::int64_t>(attention.attribute(name)); };
    AttentionSize size;
    size.sequences = query[0];
    size.queries = query[1];
    size.heads = whole("heads");
    size.keyValueHeads = whole("key_value_heads") > 0 ? whole("key_value_heads") : size.heads;
    size.querySize = query[2] / size.heads;
    size.valueSize = attention.shape[2] / size.heads;
    size.keys = keysOf(graph, attention);
    size.window = whole("window");
    size.causal = attention.attribute("bidirectional") == 0;
    size.storesScores = attention.attribute("stored") > 0;
    return size;
}

std::int64_t copiesOf(const Node& route)
{
    return route.shape[0] * route.shape[1] * static_cast<std::int64_t>(route.attribute("top_k"));
}

double forwardFlops(const TensorGraph& graph, int tensor)
{
    const Node& node = graph.node(tensor);
    if (node.leaf != Leaf::None)
        return 0;
    switch (operations()[node.operation].work) {
    case Work::None:
    case Work::Traffic: return 0;
    case Work::Attention: return attentionSizeOf(graph, node).flops();
    case Work::Product: break;
    }
    const LetterSizes bound = letterSizes(graph, node);
    double product = 2;
    for (const std::int64_t length : bound.leading)
        product *= static_cast<double>(length);
    for (const auto& [letter, length] : bound.sizes)
        product *= static_cast<double>(length);
    return product;
}

double backwardFlops(const TensorGraph& graph, int tensor)
{
    const Node& node = graph.node(tensor);
    if (node.leaf == Leaf::None && operations()[node.operation].work == Work::Attention)
        return attentionSizeOf(graph, node).backwardFlops();
    return 2 * forwardFlops(graph, tensor);
}

double forwardTraffic(const TensorGraph& graph, int tensor)
{
    const Node& node = graph.node(tensor);
    if (node.leaf != Leaf::None || operations()[node.operation].work != Work::Traffic)
        return 0;
    double bytes = graph.bytesOf(tensor);
    for (const int operand : node.operands)
        if (graph.node(operand).leaf != Leaf::Parameter)
            bytes += graph.bytesOf(operand);
    return bytes;
}

} // namespace pipewright
