// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/spmd/nodemaths.h"

#include "executor/spmd/expertmaths.h"
#include "executor/spmd/plainmaths.h"

#include "kernels/attention.h"
#include "kernels/crossentropy.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

namespace pipewright::spmd {

namespace {

using Gradients = std::vector<HostTensor>;

kernels::LinearShape linearShape(const Operands& in)
{
    const auto outputs = in[1]->shape[0], inputs = in[1]->shape[1];
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < in[0]->shape.size(); ++i)
        rows *= in[0]->shape[i];
    return {static_cast<int>(rows), static_cast<int>(inputs), static_cast<int>(outputs)};
}

HostTensor linear(const Node&, const Operands& in, const LocalPart& part)
{
    Shape shape = in[0]->shape;
    shape.back() = in[1]->shape[0];
    HostTensor out(std::move(shape));
    if (out.elements() == 0)
        return out;
    const bool bias = in.size() > 2 && part.countsOnce;
    if (in[1]->elements() == 0) { // no inputs here: nothing but the bias
        for (std::size_t i = 0; bias && i < out.elements(); ++i)
            out.data[i] = in[2]->data[i % in[2]->elements()];
        return out;
    }
    kernels::linearForward(linearShape(in), in[0]->data, in[1]->data,
                           bias ? std::span<const float>(in[2]->data) : std::span<const float>(), out.data);
    return out;
}

Gradients linearBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape), HostTensor(in[1]->shape)};
    if (in.size() > 2)
        grads.emplace_back(in[2]->shape);
    if (grad.elements() == 0)
        return grads;
    const std::span<float> biasGrad = in.size() > 2 ? std::span<float>(grads[2].data) : std::span<float>();
    if (in[1]->elements() == 0) {
        for (std::size_t i = 0; !biasGrad.empty() && i < grad.elements(); ++i)
            biasGrad[i % biasGrad.size()] += grad.data[i];
        return grads;
    }
    kernels::linearInputGrad(linearShape(in), grad.data, in[1]->data, grads[0].data);
    kernels::linearWeightGrad(linearShape(in), in[0]->data, grad.data, grads[1].data, biasGrad);
    return grads;
}

HostTensor gelu(const Node&, const Operands& in, const LocalPart&)
{
    HostTensor out(in[0]->shape);
    kernels::geluForward(in[0]->data, out.data);
    return out;
}

Gradients geluBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape)};
    kernels::geluInputGrad(in[0]->data, grad.data, grads[0].data);
    return grads;
}

HostTensor layerNorm(const Node&, const Operands& in, const LocalPart&)
{
    HostTensor out(in[0]->shape);
    const int columns = static_cast<int>(in[0]->shape.back());
    const std::vector<float> zeros(static_cast<std::size_t>(columns), 0.0f);
    if (out.elements() > 0)
        kernels::layerNormForward(static_cast<int>(out.elements()) / columns, columns, in[0]->data, in[1]->data,
                                  in.size() > 2 ? in[2]->data : zeros, out.data);
    return out;
}

Gradients layerNormBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape), HostTensor(in[1]->shape), HostTensor(in[1]->shape)};
    const int columns = static_cast<int>(in[0]->shape.back());
    if (const int rows = static_cast<int>(grad.elements()) / columns; rows > 0) {
        kernels::layerNormInputGrad(rows, columns, in[0]->data, in[1]->data, grad.data, grads[0].data);
        kernels::layerNormWeightGrad(rows, columns, in[0]->data, grad.data, grads[1].data, grads[2].data);
    }
    grads.resize(in.size());
    return grads;
}

/// Keys and values with one head for each of the queries', as the kernel wants them; and the reverse for gradients.
HostTensor repeatedHeads(const HostTensor& narrow, std::int64_t headSize, std::int64_t times)
{
    Shape shape = narrow.shape;
    shape.back() *= times;
    HostTensor wide(std::move(shape));
    const auto h = static_cast<std::size_t>(headSize), t = static_cast<std::size_t>(times);
    for (std::size_t i = 0; i < wide.elements(); ++i)
        wide.data[i] = narrow.data[i / (h * t) * h + i % h];
    return wide;
}

HostTensor foldedHeads(std::span<const float> wide, Shape shape, std::int64_t headSize, std::int64_t times)
{
    HostTensor narrow(std::move(shape));
    const auto h = static_cast<std::size_t>(headSize), t = static_cast<std::size_t>(times);
    for (std::size_t i = 0; i < wide.size(); ++i)
        narrow.data[i / (h * t) * h + i % h] += wide[i];
    return narrow;
}

struct AttentionParts {
    kernels::AttentionShape shape;
    std::int64_t times = 1;
    HostTensor key, value, probabilities;
};

AttentionParts attentionParts(const Node& node, const Operands& in)
{
    const auto heads = static_cast<std::int64_t>(node.attributes.at("heads"));
    const auto narrow = static_cast<std::int64_t>(node.attributes.at("key_value_heads"));
    const std::int64_t headSize = node.shape.back() / heads;
    AttentionParts parts;
    parts.times = heads / narrow;
    parts.shape = {static_cast<int>(in[0]->shape[0]), static_cast<int>(in[0]->shape[1]),
                   static_cast<int>(in[0]->shape[2] / headSize), static_cast<int>(headSize)};
    parts.key = repeatedHeads(*in[1], headSize, parts.times);
    parts.value = repeatedHeads(*in[2], headSize, parts.times);
    parts.probabilities = HostTensor({static_cast<std::int64_t>(parts.shape.scores())});
    return parts;
}

HostTensor attention(const Node& node, const Operands& in, const LocalPart&)
{
    HostTensor out(in[0]->shape);
    if (out.elements() == 0)
        return out;
    AttentionParts parts = attentionParts(node, in);
    kernels::attentionForward(parts.shape, in[0]->data, parts.key.data, parts.value.data, parts.probabilities.data,
                              out.data);
    return out;
}

Gradients attentionBack(const Node& node, const Operands& in, const HostTensor&, const HostTensor& grad,
                        const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape), HostTensor(in[1]->shape), HostTensor(in[2]->shape)};
    if (grad.elements() == 0)
        return grads;
    AttentionParts parts = attentionParts(node, in);
    HostTensor out(in[0]->shape);
    kernels::attentionForward(parts.shape, in[0]->data, parts.key.data, parts.value.data, parts.probabilities.data,
                              out.data);
    std::vector<float> side(3 * out.elements()), scratch(parts.shape.scores());
    kernels::attentionInputGrad(parts.shape, in[0]->data, parts.key.data, parts.value.data, parts.probabilities.data,
                                grad.data, side, scratch);
    const auto hidden = static_cast<std::size_t>(parts.shape.hidden());
    std::array<std::vector<float>, 3> each;
    for (std::size_t token = 0; token < parts.shape.tokens(); ++token)
        for (std::size_t which = 0; which < 3; ++which)
            each[which].insert(each[which].end(),
                               side.begin() + static_cast<std::ptrdiff_t>((3 * token + which) * hidden),
                               side.begin() + static_cast<std::ptrdiff_t>((3 * token + which + 1) * hidden));
    grads[0].data = each[0];
    grads[1] = foldedHeads(each[1], in[1]->shape, parts.shape.headSize, parts.times);
    grads[2] = foldedHeads(each[2], in[2]->shape, parts.shape.headSize, parts.times);
    return grads;
}

std::vector<std::int32_t> wholeNumbers(const HostTensor& values)
{
    return {values.data.begin(), values.data.end()};
}

HostTensor crossEntropy(const Node&, const Operands& in, const LocalPart&)
{
    HostTensor loss{Shape{}};
    const int classes = static_cast<int>(in[0]->shape.back());
    std::vector<float> probabilities = in[0]->data;
    if (!probabilities.empty())
        kernels::crossEntropyForward(static_cast<int>(probabilities.size()) / classes, classes, probabilities,
                                     wholeNumbers(*in[1]), 1, loss.data);
    return loss;
}

Gradients crossEntropyBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape), HostTensor()};
    const int classes = static_cast<int>(in[0]->shape.back());
    std::vector<float> probabilities = in[0]->data;
    if (probabilities.empty())
        return grads;
    const int rows = static_cast<int>(probabilities.size()) / classes;
    const auto targets = wholeNumbers(*in[1]);
    float ignored = 0;
    kernels::crossEntropyForward(rows, classes, probabilities, targets, 1, {&ignored, 1});
    kernels::crossEntropyInputGrad(rows, classes, probabilities, targets, grad.data.front(), grads[0].data);
    return grads;
}

constexpr NodeMaths kernelMaths[] = {
    {"linear", linear, linearBack},
    {"gelu", gelu, geluBack},
    {"layer_norm", layerNorm, layerNormBack},
    {"attention", attention, attentionBack},
    {"cross_entropy", crossEntropy, crossEntropyBack},
};

const NodeMaths* mathsOf(const Node& node)
{
    const std::string_view name = operations()[static_cast<std::size_t>(node.operation)].name;
    for (const std::span<const NodeMaths> table :
         {std::span<const NodeMaths>(kernelMaths), plainMaths(), expertMaths()})
        for (const NodeMaths& maths : table)
            if (maths.operation == name)
                return &maths;
    return nullptr;
}

} // namespace

Diagnostics whyNotRunnable(const TensorGraph& graph)
{
    Diagnostics found;
    for (const Node& node : graph.nodes())
        if (node.leaf == Leaf::None && !mathsOf(node))
            found.push_back({Severity::Error, node.name,
                             fmt::format("{} can be shared out, but not run here",
                                         operations()[static_cast<std::size_t>(node.operation)].name),
                             "use another operation"});
    return found;
}

HostTensor forward(const Node& node, const Operands& operands, const LocalPart& part)
{
    return mathsOf(node)->forward(node, operands, part);
}

std::vector<HostTensor> backward(const Node& node, const Operands& operands, const HostTensor& result,
                                 const HostTensor& resultGrad, const LocalPart& part)
{
    return mathsOf(node)->backward(node, operands, result, resultGrad, part);
}

} // namespace pipewright::spmd
