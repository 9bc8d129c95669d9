// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/runnablegraph.h"

#include "core/base/formattedtext.h"
#include "executor/stage/kernelsettings.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace pipewright::sharding {

namespace {

/// What of an operation is known here.
struct Known {
    std::string_view operation;
    std::size_t mostOperands = 0;
    /// The attributes that it heeds, or that change nothing of it, separated by blanks. A node with another, or with
    /// more operands, is refused.
    std::string_view attributes = {};

    bool knows(std::string_view attribute) const
    {
        const std::size_t at = attributes.find(attribute);
        const auto ends = [this](std::size_t place) { return place == attributes.size() || attributes[place] == ' '; };
        return at != std::string_view::npos && (at == 0 || attributes[at - 1] == ' ') && ends(at + attribute.size());
    }
};

// What of the scores is kept is no question here: the backward computes them again. Which of these a node may have says
// its row in core/model/operations.cpp.
constexpr std::string_view attentionAttributes =
    "heads key_value_heads keys query_size rotary_size window bidirectional stored streamed scale soft_cap rotary_base "
    "rotary_scaling rotary_factor rotary_low rotary_high rotary_original linear_biases";

constexpr Known knownOperations[] = {
    {"linear", 3},
    {"add", 2},
    {"multiply", 2},
    {"clamped_silu", 2},
    {"scale", 1, "factor"},
    {"soft_cap", 1, "cap"},
    {"gelu", 1},
    {"gelu_erf", 1},
    {"relu", 1},
    {"silu", 1},
    {"tanh", 1},
    {"softmax", 1},
    {"log_softmax", 1},
    {"layer_norm", 3, "epsilon"},
    {"rms_norm", 2, "epsilon"},
    {"head_norm", 2, "epsilon heads"},
    {"embedding", 2},
    {"feature_bag", 2},
    {"positions", 2},
    {"segments", 2},
    {"class_token", 2},
    {"first_row", 1},
    {"attention", 4, attentionAttributes},
    {"latent_attention", 3, attentionAttributes},
    {"join_keys", 2, "heads"},
    {"route", 2, "top_k capacity balance unnormalised scale sigmoid groups groups_per_token"},
    {"dispatch", 2},
    {"expert_linear", 3},
    {"combine", 2},
    {"cross_entropy", 2},
    {"sum", 1},
    {"hand_over", 1},
};

const Known* knownOf(std::string_view operation)
{
    for (const Known& known : knownOperations)
        if (known.operation == operation)
            return &known;
    return nullptr;
}

/// The kernels need heads of one size. Null: no objection.
const char* whyNotHeads(const TensorGraph& graph, const Node& node)
{
    const std::string_view name = operations()[node.operation].name;
    if (name != "attention" && name != "latent_attention" && name != "head_norm")
        return nullptr;
    const auto heads = static_cast<std::int64_t>(node.attributes.at("heads"));
    const std::int64_t size = node.shape.back() / heads;
    if (size * heads != node.shape.back())
        return "its columns are no whole number of heads";
    if (name == "head_norm")
        return graph.node(node.operands[1]).shape.front() == size ? nullptr
                                                                  : "it has not a gain for each of a head's values";
    const Shape &queries = graph.node(node.operands[0]).shape, &keys = graph.node(node.operands[1]).shape;
    const auto narrow = static_cast<std::int64_t>(attributeOr(node, "key_value_heads", static_cast<double>(heads)));
    const std::int64_t querySize = querySizeOf(node);
    if (queries.back() != heads * querySize || heads % narrow != 0 || keys.back() != narrow * querySize)
        return "its keys have not the size of its queries, or cannot be shared evenly";
    if (attributeOr(node, "linear_biases", 0) > 0 && attributeOr(node, "bidirectional", 0) > 0)
        return "linear biases fall with the distance to earlier tokens, and it has later ones";
    if (keys[1] != node.shape[1])
        return "it has not as many keys as queries";
    if (node.operands.size() > 3 && graph.node(node.operands[3]).shape.front() != heads)
        return "it has not a sink for each of its heads";
    const auto turned = static_cast<std::int64_t>(attributeOr(node, "rotary_size", static_cast<double>(querySize)));
    if (isRotated(node)
        && (turned > querySize || turned % 2 != 0 || turned > 2 * std::int64_t{kernels::mostRotaryPairs}))
        return "its heads' values cannot be turned in pairs";
    return nullptr;
}

/// The kernels would read beside the experts of a router that cannot choose so many. Null: no objection.
const char* whyNotRouted(const TensorGraph& graph, const Node& node)
{
    if (!routesTokens(node))
        return nullptr;
    const auto experts = static_cast<double>(graph.node(node.operands[0]).shape.back());
    const double groups = attributeOr(node, "groups", 1), visited = attributeOr(node, "groups_per_token", 1);
    if (groups > experts || std::fmod(experts, groups) != 0)
        return "its experts are no whole number of groups of one size";
    if (visited > groups || node.attributes.at("top_k") > experts / groups * visited)
        return "a token is to visit more experts, or groups of them, than there are";
    return nullptr;
}

} // namespace

Diagnostics whyNotRunnable(const TensorGraph& graph, int pieces)
{
    Diagnostics found;
    const auto fault = [&found](const Node& node, std::string what, const char* hint) {
        found.push_back({Severity::Error, node.name, std::move(what), hint});
    };
    for (const Node& node : graph.nodes()) {
        if (node.leaf != Leaf::None)
            continue;
        const std::string_view name = operations()[node.operation].name;
        const Known* const known = knownOf(name);
        if (!known) {
            fault(node, fmt::format("{} can be shared out, but not run here", name), "use another operation");
            continue;
        }
        std::vector<std::string> unknown;
        if (node.operands.size() > known->mostOperands)
            unknown.push_back(graph.node(node.operands.back()).name);
        for (const auto& [attribute, value] : node.attributes)
            if (!known->knows(attribute))
                unknown.push_back(fmt::format("\"{}\"", attribute));
        if (!unknown.empty())
            fault(
                node,
                fmt::format("{} with {} can be shared out, but not run here", name, pipewright::joined(unknown, ", ")),
                "leave this out");
        if (const std::string_view is = name;
            is.ends_with("attention") && keysOf(graph, node) != pieces * graph.node(node.operands[1]).shape[1])
            fault(node, "it has not as many keys as the pieces of a sequence have together",
                  "leave \"keys\" out, or cut sequences into as many pieces");
        if (const char* why = whyNotHeads(graph, node))
            fault(node, why, "give queries, keys and values heads of one size");
        if (const char* why = whyNotRouted(graph, node))
            fault(node, why, "give every group as many experts, of which a token can visit enough");
        // Each would be read as if it had other rows.
        const auto rowsOf = [&](std::size_t operand, std::size_t dim) {
            return graph.node(node.operands[operand]).shape[dim];
        };
        if (name == "positions" && rowsOf(1, 0) != pieces * rowsOf(0, 1))
            fault(node, "its table has rows for later pieces of the sequence", "give a row for each position");
        if (name == "segments" && rowsOf(1, 0) != 2)
            fault(node, fmt::format("its table has {} rows", rowsOf(1, 0)), "give a row for each half of a sequence");
    }
    return found;
}

bool staysExact(const Node& node)
{
    return node.leaf == Leaf::Input || node.shape.empty() || routesTokens(node);
}

bool routesTokens(const Node& node)
{
    return node.leaf == Leaf::None && operations()[static_cast<std::size_t>(node.operation)].name == "route";
}

std::int64_t chosenPerToken(const Node& node)
{
    return static_cast<std::int64_t>(node.attributes.at("top_k"));
}

} // namespace pipewright::sharding
