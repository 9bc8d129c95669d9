// SPDX-License-Identifier: GPL-3.0-or-later
// The single-device model that is sharded: operations on tensors with shapes, in topological order. One node makes one
// tensor. Shapes follow from the operations' signatures, so a graph that was built is consistent.
#pragma once

#include "core/base/diagnostic.h"
#include "core/model/operations.h"
#include "core/model/operationsizes.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class Leaf : std::uint8_t {
    None,
    Input,
    Received, ///< an input from an earlier stage, which needs its gradient back, whole or in pieces
    Parameter,
};

using Shape = std::vector<std::int64_t>;
using Attributes = std::map<std::string, double, std::less<>>;

struct Node {
    std::string name;
    Leaf leaf = Leaf::None;
    int operation = -1; ///< of a node that is no leaf
    std::vector<int> operands;
    Shape shape;
    Attributes attributes;
    int segment = 0; ///< whose sharding ratios its pieces follow
    /// The part of a layer that it belongs to: "fc1". Products of one part that read the same tensor are computed as
    /// one, and their weights and biases are held as one: "fc1.weight".
    std::string part;
    LayerParameter::Start start = LayerParameter::Start::Normal; ///< of a parameter
    bool trained = true;                                         ///< of a parameter: whether it has a gradient
    /// A value of the model's width between matrix products: tensor-parallel members have it whole, or split its
    /// tokens.
    bool betweenProducts = false;
    bool narrow = false; ///< a product that multiplies TensorGraph::products
    /// Tensor-parallel members that split the tokens of this operation, of a product its rows too: with whole experts.
    int tokensOver = 1;

    double elements() const;
    std::int64_t count() const { return static_cast<std::int64_t>(elements()); }
    double attribute(std::string_view of) const; ///< 0: it has none of this name
    bool operator==(const Node&) const = default;
};

inline constexpr int maxRank = 6;
inline constexpr int maxSegments = 64;

class TensorGraph {
public:
    std::string name;
    int bytesPerElement = 4;
    ProductType products = ProductType::Own; ///< of narrow nodes
    bool keepsNarrow = false;                ///< what these read is kept so (FrameworkMemory::narrowInputs)
    int stateBytesPerParameter = 4;          ///< per parameter element on a device: value, gradient, optimizer state

    /// These append a node and return its tensor. They throw Error (where = the node's name): a name that is
    /// taken, operands that do not fit, a missing attribute.
    int addInput(std::string_view name, Shape shape, int segment = 0);
    int addReceived(std::string_view name, Shape shape, int segment = 0);
    int addParameter(std::string_view name, Shape shape, int segment = 0);
    int add(std::string_view name, std::string_view operation, std::vector<int> operands, Attributes attributes = {},
            int segment = 0);

    /// What a model's description says of a node besides (Node::part).
    void describe(int tensor, std::string part, bool betweenProducts);
    void describeTokensOver(int tensor, int members) { m_nodes[static_cast<std::size_t>(tensor)].tokensOver = members; }
    void describeNarrow(int tensor) { m_nodes[static_cast<std::size_t>(tensor)].narrow = true; }
    void describeParameter(int tensor, std::string part, LayerParameter::Start start, bool trained = true);

    const std::vector<Node>& nodes() const { return m_nodes; }
    const Node& node(int tensor) const { return m_nodes[tensor]; }
    int size() const { return static_cast<int>(m_nodes.size()); }
    int find(std::string_view name) const;  ///< -1: there is none
    int loss() const { return size() - 1; } ///< the last node
    int segments() const;
    /// Per tensor the nodes that use it, in order and without duplicates.
    std::vector<std::vector<int>> consumers() const;
    double bytesOf(int tensor) const { return node(tensor).elements() * bytesPerElement; }

    /// Errors of the graph as a training step: no loss at the end, unused tensors.
    Diagnostics check() const;

    bool operator==(const TensorGraph&) const = default;

private:
    int addLeaf(std::string_view name, Leaf leaf, Shape shape, int segment);
    int append(Node node);

    std::vector<Node> m_nodes;
    std::map<std::string, int, std::less<>> m_byName;
};

/// The size of every letter of an operation's signature, and the leading dimensions of '*', from a node whose shapes
/// fit.
struct LetterSizes {
    std::map<char, std::int64_t> sizes;
    Shape leading;
};
LetterSizes letterSizes(const TensorGraph& graph, const Node& node);

/// Of the forward pass (operations.h: Work), with every slot of experts filled, and attention as it is computed
/// (operationsizes.h).
double forwardFlops(const TensorGraph& graph, int tensor);
/// Of input and weight gradients together: twice the forward's, of attention what its kernel computes.
double backwardFlops(const TensorGraph& graph, int tensor);
/// Bytes through memory, forward: operands that are no parameters, and the result.
double forwardTraffic(const TensorGraph& graph, int tensor);

/// Of an attention: the keys that a query meets, those of earlier pieces of the sequence included.
std::int64_t keysOf(const TensorGraph& graph, const Node& attention);
/// Precondition: `attention` is one.
AttentionSize attentionSizeOf(const TensorGraph& graph, const Node& attention);
/// Of a route: copies of tokens that visit experts; there may be more slots.
std::int64_t copiesOf(const Node& route);

std::string shapeText(const Shape& shape); ///< "[6, 4]"

} // namespace pipewright
