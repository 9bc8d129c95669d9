// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/stage/kernelsettings.h"

#include "core/base/diagnostic.h"
#include "core/model/modelgraph.h"
#include "core/model/transformer.h"
#include "kernels/layernorm.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

double attributeOr(const Node& node, std::string_view name, double otherwise)
{
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? otherwise : found->second;
}

kernels::ActivationKind activationKind(std::string_view operation)
{
    constexpr std::pair<std::string_view, kernels::ActivationKind> kinds[] = {
        {"gelu", kernels::ActivationKind::GeluTanh},
        {"gelu_erf", kernels::ActivationKind::Gelu},
        {"silu", kernels::ActivationKind::Silu},
        {"tanh", kernels::ActivationKind::Tanh},
        {"clamped_silu", kernels::ActivationKind::ClampedSilu}};
    for (const auto& [name, kind] : kinds)
        if (name == operation)
            return kind;
    throw Error(std::string(operation), "is no function that stages compute", "use another activation");
}

float normEpsilon(const Node& norm)
{
    const auto found = norm.attributes.find("epsilon");
    return found == norm.attributes.end() ? kernels::layerNormEpsilon : float(found->second);
}

namespace {

bool isLatent(const Node& attention)
{
    return operations()[std::size_t(attention.operation)].name == "latent_attention";
}

std::int64_t headSizeOf(const Node& node)
{
    return node.shape.back() / std::int64_t(node.attributes.at("heads"));
}

} // namespace

std::int64_t querySizeOf(const Node& attention)
{
    return isLatent(attention) ? std::int64_t(attention.attributes.at("query_size")) : headSizeOf(attention);
}

kernels::GroupedAttentionShape attentionOf(const Node& attention, const Shape& query, const Shape& key, int firstHead)
{
    const std::int64_t querySize = querySizeOf(attention), length = query[1];
    return {.sequences = int(query[0]),
            .length = int(length),
            .heads = int(query[2] / querySize),
            .keyValueHeads = int(key[2] / querySize),
            .querySize = int(querySize),
            .valueSize = int(headSizeOf(attention)),
            .pieces = int(attributeOr(attention, "keys", double(length))) / std::max(int(length), 1),
            .window = int(attributeOr(attention, "window", 0)),
            .causal = attributeOr(attention, "bidirectional", 0) == 0,
            .scale = float(attributeOr(attention, "scale", 1 / std::sqrt(double(querySize)))),
            .softCap = float(attributeOr(attention, "soft_cap", 0)),
            .biasedHeads = attributeOr(attention, "linear_biases", 0) > 0 ? int(attention.attributes.at("heads")) : 0,
            .firstHead = firstHead};
}

bool isRotated(const Node& attention)
{
    return attention.attributes.contains("rotary_base");
}

kernels::Rotate rotationOf(const Node& attention, const Shape& shape, bool backwards, std::span<float> values,
                           int firstPosition)
{
    const auto number = [&](std::string_view name) { return attributeOr(attention, name, 1); };
    const kernels::RotaryFrequencies frequencies{
        number("rotary_base"),   kernels::RotaryScaling(int(attributeOr(attention, "rotary_scaling", 0))),
        number("rotary_factor"), number("rotary_low"),
        number("rotary_high"),   number("rotary_original")};
    const int size = int(querySizeOf(attention)), rotated = int(attributeOr(attention, "rotary_size", size));
    return {frequencies,         int(shape[1]), firstPosition, int(shape[2]) / size, size, size - rotated, rotated,
            isLatent(attention), backwards,     values};
}

kernels::LatentKeys latentKeysOf(const Node& joinKeys, const Shape& own, const Shape& shared)
{
    const std::int64_t size = headSizeOf(joinKeys), ofOwn = size - shared[2];
    return {int(own[2] / ofOwn), int(ofOwn), int(shared[2])};
}

kernels::Router routerOf(const Node& route, const Shape& logits)
{
    return {int(logits.back()),
            int(route.attributes.at("top_k")),
            int(attributeOr(route, "groups", 1)),
            int(attributeOr(route, "groups_per_token", 1)),
            attributeOr(route, "sigmoid", 0) > 0 ? kernels::RouterKind::Sigmoid : kernels::RouterKind::Softmax,
            attributeOr(route, "unnormalised", 0) == 0,
            float(attributeOr(route, "scale", 1))};
}

double balanceOver(const ModelShape& shape, int microbatches)
{
    const int layers = shape.experts > 0 ? shape.layers - shape.denseLayers : 0; // with a mixture of experts
    return double(microbatches) * std::max(layers, 1);
}

std::vector<kernels::GroupedAttentionShape> attentionsOf(const ModelShape& shape)
{
    std::vector<kernels::GroupedAttentionShape> all;
    for (int number = 0; number < shape.layers; ++number) {
        const auto hasWindow = [window = int(windowOf(shape, number))](const auto& other) {
            return other.window == window;
        };
        if (std::any_of(all.begin(), all.end(), hasWindow))
            continue; // layers differ only in their windows
        const TensorGraph graph = stageGraph(shape, {}, {number, 1, false, false});
        for (const Node& node : graph.nodes())
            if (node.leaf == Leaf::None && operations()[std::size_t(node.operation)].work == Work::Attention)
                all.push_back(
                    attentionOf(node, graph.node(node.operands[0]).shape, graph.node(node.operands[1]).shape));
    }
    return all;
}

} // namespace pipewright
