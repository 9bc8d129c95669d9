// SPDX-License-Identifier: GPL-3.0-or-later
// A member has some of the heads, or all heads of some sequences; the backward computes the attention again.
#include "executor/sharding/attentionmaths.h"

#include "executor/stage/kernelsettings.h"

namespace pipewright::sharding {

namespace {

using Gradients = std::vector<Tensor>;

kernels::GroupedAttentionShape shapeOf(const Node& node, const Operands& in, const LocalPart& part)
{
    return attentionOf(node, in[0]->shape, in[1]->shape, static_cast<int>(part.firstHead));
}

Tensor turned(MemberDevice& member, const Node& node, const Tensor& heads)
{
    if (!isRotated(node))
        return heads;
    Tensor made = member.make(heads.shape);
    member.operations().copy(std::span<const float>(heads.data), made.data);
    member.operations().run(rotationOf(node, made.shape, false, made.data));
    return made;
}

Shape outputShape(const kernels::GroupedAttentionShape& shape)
{
    return {shape.sequences, shape.length, std::int64_t{shape.heads} * shape.valueSize};
}

struct AttentionParts {
    kernels::GroupedAttentionShape shape;
    Tensor query, key, logSums, output;
    std::span<const float> sinks;
};

/// Computes the whole attention.
AttentionParts attend(MemberDevice& member, const Node& node, const Operands& in, const LocalPart& part)
{
    AttentionParts parts{shapeOf(node, in, part),
                         turned(member, node, *in[0]),
                         turned(member, node, *in[1]),
                         {},
                         {},
                         in.size() > 3 ? std::span<const float>(in[3]->data) : std::span<const float>()};
    parts.logSums = member.make({static_cast<std::int64_t>(parts.shape.numbers())});
    parts.output = member.make(outputShape(parts.shape));
    member.operations().run(kernels::GroupedAttentionForward{parts.shape,
                                                             parts.query.data,
                                                             parts.key.data,
                                                             in[2]->data,
                                                             parts.logSums.data,
                                                             parts.output.data,
                                                             {},
                                                             parts.sinks});
    return parts;
}

Tensor attention(MemberDevice& member, const Node& node, const Operands& in, const LocalPart& part)
{
    if (in[0]->elements() > 0)
        return attend(member, node, in, part).output;
    return member.make(outputShape(shapeOf(node, in, part)));
}

Gradients attentionBack(MemberDevice& member, const Node& node, const Operands& in, const Tensor&, const Tensor& grad,
                        const LocalPart& part)
{
    Gradients grads(in.size());
    if (in.size() > 3) // computed with the other gradients, also where only these are asked for
        grads[3] = member.zeros(in[3]->shape);
    if (!part.inputGrads && in.size() == 3)
        return grads;
    for (std::size_t o = 0; o < 3; ++o)
        grads[o] = grad.elements() == 0 ? member.zeros(in[o]->shape) : member.make(in[o]->shape);
    if (grad.elements() == 0)
        return grads;
    const AttentionParts parts = attend(member, node, in, part);
    const Tensor dots = member.make(parts.logSums.shape);
    member.operations().run(kernels::GroupedAttentionInputGrad{parts.shape,
                                                               parts.query.data,
                                                               parts.key.data,
                                                               in[2]->data,
                                                               parts.logSums.data,
                                                               parts.output.data,
                                                               grad.data,
                                                               grads[0].data,
                                                               grads[1].data,
                                                               grads[2].data,
                                                               dots.data,
                                                               {},
                                                               {},
                                                               parts.sinks,
                                                               in.size() > 3 ? grads[3].data : std::span<float>()});
    for (std::size_t which = 0; which < 2 && isRotated(node); ++which)
        member.operations().run(rotationOf(node, grads[which].shape, true, grads[which].data));
    return grads;
}

Tensor joinKeys(MemberDevice& member, const Node& node, const Operands& in, const LocalPart&)
{
    const kernels::LatentKeys keys = latentKeysOf(node, in[0]->shape, in[1]->shape);
    Tensor out =
        member.make({in[0]->shape[0], in[0]->shape[1], std::int64_t{keys.heads} * (keys.ownSize + keys.sharedSize)});
    if (out.elements() > 0)
        member.operations().run(kernels::JoinKeys{keys, in[0]->data, in[1]->data, out.data});
    return out;
}

Gradients joinKeysBack(MemberDevice& member, const Node& node, const Operands& in, const Tensor&, const Tensor& grad,
                       const LocalPart&)
{
    Gradients grads{member.zeros(in[0]->shape), member.zeros(in[1]->shape)};
    if (grad.elements() > 0)
        member.operations().run(kernels::SplitKeysGrad{latentKeysOf(node, in[0]->shape, in[1]->shape), grad.data,
                                                       grads[0].data, grads[1].data});
    return grads;
}

// What of the scores is kept is no question here: the backward computes them again. Which of these a node may have says
// its row in core/model/operations.cpp.
constexpr std::string_view attributes =
    "heads key_value_heads query_size rotary_size window bidirectional stored streamed scale soft_cap rotary_base "
    "rotary_scaling rotary_factor rotary_low rotary_high rotary_original linear_biases";

constexpr NodeMaths attentionTable[] = {
    {"attention", attention, attentionBack, 4, attributes},
    {"latent_attention", attention, attentionBack, 3, attributes},
    {"join_keys", joinKeys, joinKeysBack, 2, "heads"},
};

} // namespace

std::span<const NodeMaths> attentionMaths()
{
    return attentionTable;
}

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

} // namespace pipewright::sharding
