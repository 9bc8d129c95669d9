// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/nodemaths.h"

#include "executor/sharding/expertmaths.h"
#include "executor/sharding/plainmaths.h"

#include <fmt/format.h>

#include <array>

namespace pipewright::sharding {

namespace {

using Gradients = std::vector<Tensor>;
using kernels::TensorOperation;

kernels::LinearShape linearShape(const Operands& in)
{
    const auto outputs = in[1]->shape[0], inputs = in[1]->shape[1];
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < in[0]->shape.size(); ++i)
        rows *= in[0]->shape[i];
    return {static_cast<int>(rows), static_cast<int>(inputs), static_cast<int>(outputs)};
}

Tensor linear(MemberDevice& member, const Node&, const Operands& in, const LocalPart& part)
{
    Shape shape = in[0]->shape;
    shape.back() = in[1]->shape[0];
    const bool bias = in.size() > 2 && part.countsOnce;
    if (in[1]->elements() == 0) { // no inputs here: nothing but the bias
        Tensor out = member.zeros(std::move(shape));
        if (bias && out.elements() > 0)
            member.call(TensorOperation::AddRepeated, {count(out), count(*in[2])},
                        {out.data.data(), in[2]->data.data()}, out.data.data());
        return out;
    }
    Tensor out = member.make(std::move(shape));
    if (out.elements() > 0)
        member.operations().run(kernels::LinearForward{
            linearShape(in), in[0]->data, in[1]->data,
            bias ? std::span<const float>(in[2]->data) : std::span<const float>(), out.data, kernels::Store::Replace});
    return out;
}

Gradients linearBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                     const LocalPart& part)
{
    Gradients grads(in.size());
    if (part.inputGrads)
        grads[0] = member.zeros(in[0]->shape);
    for (std::size_t o = 1; o < in.size() && part.weightGrads; ++o)
        grads[o] = member.zeros(in[o]->shape);
    if (grad.elements() == 0)
        return grads;
    const std::span<float> biasGrad = in.size() > 2 ? grads[2].data : std::span<float>();
    if (in[1]->elements() == 0) {
        if (!biasGrad.empty())
            member.call(TensorOperation::SumRepeated, {count(grad), static_cast<std::int64_t>(biasGrad.size())},
                        {grad.data.data()}, biasGrad.data());
        return grads;
    }
    if (part.inputGrads)
        member.operations().run(kernels::LinearInputGrad{linearShape(in), grad.data, in[1]->data, grads[0].data});
    if (part.weightGrads)
        member.operations().run(
            kernels::LinearWeightGrad{linearShape(in), in[0]->data, grad.data, grads[1].data, biasGrad});
    return grads;
}

Tensor gelu(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    Tensor out = member.make(in[0]->shape);
    if (out.elements() > 0)
        member.operations().run(kernels::GeluForward{in[0]->data, out.data});
    return out;
}

Gradients geluBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                   const LocalPart&)
{
    Gradients grads{member.make(in[0]->shape)};
    if (grad.elements() > 0)
        member.operations().run(kernels::GeluInputGrad{in[0]->data, grad.data, grads[0].data});
    return grads;
}

Tensor layerNorm(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    Tensor out = member.make(in[0]->shape);
    if (out.elements() == 0)
        return out;
    const int columns = static_cast<int>(in[0]->shape.back());
    const Tensor shift = in.size() > 2 ? *in[2] : member.zeros({columns});
    member.operations().run(kernels::LayerNormForward{static_cast<int>(out.elements()) / columns, columns, in[0]->data,
                                                      in[1]->data, shift.data, out.data});
    return out;
}

Gradients layerNormBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                        const LocalPart& part)
{
    Gradients grads(3);
    if (part.inputGrads)
        grads[0] = member.zeros(in[0]->shape);
    for (std::size_t o = 1; o < grads.size() && part.weightGrads; ++o)
        grads[o] = member.zeros(in[1]->shape);
    const int columns = static_cast<int>(in[0]->shape.back());
    const int rows = static_cast<int>(grad.elements()) / columns;
    if (part.inputGrads && rows > 0)
        member.operations().run(
            kernels::LayerNormInputGrad{rows, columns, in[0]->data, in[1]->data, grad.data, grads[0].data});
    if (part.weightGrads && rows > 0)
        member.operations().run(
            kernels::LayerNormWeightGrad{rows, columns, in[0]->data, grad.data, grads[1].data, grads[2].data});
    grads.resize(in.size());
    return grads;
}

struct AttentionParts {
    kernels::AttentionShape shape;
    std::int64_t times = 1;
    Tensor key, value, saved, output;
};

/// Keys and values with one head for each of the queries', as the kernel wants them.
Tensor repeatedHeads(MemberDevice& member, const Tensor& narrow, std::int64_t headSize, std::int64_t times)
{
    if (times == 1)
        return narrow;
    Shape shape = narrow.shape;
    shape.back() *= times;
    Tensor wide = member.make(std::move(shape));
    member.call(TensorOperation::RepeatHeads, {count(wide), headSize, times}, {narrow.data.data()}, wide.data.data());
    return wide;
}

/// Computed, from the beginning.
AttentionParts attend(MemberDevice& member, const Node& node, const Operands& in)
{
    const auto heads = static_cast<std::int64_t>(node.attributes.at("heads"));
    const auto narrow = static_cast<std::int64_t>(node.attributes.at("key_value_heads"));
    const std::int64_t headSize = node.shape.back() / heads;
    AttentionParts parts;
    parts.times = heads / narrow;
    parts.shape = {static_cast<int>(in[0]->shape[0]), static_cast<int>(in[0]->shape[1]),
                   static_cast<int>(in[0]->shape[2] / headSize), static_cast<int>(headSize)};
    parts.key = repeatedHeads(member, *in[1], headSize, parts.times);
    parts.value = repeatedHeads(member, *in[2], headSize, parts.times);
    parts.saved = member.make({static_cast<std::int64_t>(member.operations().attentionSaved(parts.shape))});
    parts.output = member.make(in[0]->shape);
    member.operations().run(kernels::AttentionForward{
        parts.shape, in[0]->data, parts.key.data, parts.value.data, parts.saved.data, parts.output.data, {}});
    return parts;
}

Tensor attention(MemberDevice& member, const Node& node, const Operands& in, const LocalPart&)
{
    return in[0]->elements() == 0 ? member.make(in[0]->shape) : attend(member, node, in).output;
}

Gradients attentionBack(MemberDevice& member, const Node& node, const Operands& in, const Tensor&, const Tensor& grad,
                        const LocalPart&)
{
    if (grad.elements() == 0)
        return {member.zeros(in[0]->shape), member.zeros(in[1]->shape), member.zeros(in[2]->shape)};
    const AttentionParts parts = attend(member, node, in);
    Tensor side = member.zeros({static_cast<std::int64_t>(3 * parts.output.elements())});
    const Tensor scratch = member.make(parts.saved.shape);
    member.operations().run(kernels::AttentionInputGrad{parts.shape,
                                                        in[0]->data,
                                                        parts.key.data,
                                                        parts.value.data,
                                                        parts.saved.data,
                                                        parts.output.data,
                                                        grad.data,
                                                        side.data,
                                                        scratch.data,
                                                        {},
                                                        {}});
    const auto tokens = static_cast<std::int64_t>(parts.shape.tokens()), hidden = std::int64_t{parts.shape.hidden()};
    Gradients grads;
    for (std::int64_t which = 0; which < 3; ++which) {
        grads.push_back(member.make(parts.output.shape));
        member.call(TensorOperation::CopyBlocks, {tokens, hidden, 3 * hidden, hidden},
                    {side.data.data() + which * hidden}, grads.back().data.data());
    }
    for (std::size_t which = 1; which < 3 && parts.times > 1; ++which) {
        Tensor narrow = member.make(in[which]->shape);
        member.call(TensorOperation::FoldHeads, {count(narrow), parts.shape.headSize, parts.times},
                    {grads[which].data.data()}, narrow.data.data());
        grads[which] = std::move(narrow);
    }
    return grads;
}

/// Turned into probabilities on the way; rows of them.
int crossEntropyOf(MemberDevice& member, const Operands& in, const MemberDevice::Whole& targets, Tensor& probabilities,
                   Tensor& loss)
{
    const int classes = static_cast<int>(in[0]->shape.back()), rows = static_cast<int>(in[0]->elements()) / classes;
    probabilities = member.make(in[0]->shape);
    member.operations().copy(std::span<const float>(in[0]->data), probabilities.data);
    member.operations().run(
        kernels::CrossEntropyForward{rows, classes, probabilities.data, targets.data, 1, loss.data});
    return rows;
}

Tensor crossEntropy(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    Tensor loss = member.zeros(Shape{}), probabilities;
    if (in[0]->elements() > 0)
        crossEntropyOf(member, in, member.wholeNumbers(*in[1]), probabilities, loss);
    return loss;
}

Gradients crossEntropyBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                           const LocalPart&)
{
    Gradients grads{member.zeros(in[0]->shape), Tensor()};
    if (in[0]->elements() == 0)
        return grads;
    const MemberDevice::Whole targets = member.wholeNumbers(*in[1]);
    Tensor ignored = member.zeros(Shape{}), probabilities;
    const int rows = crossEntropyOf(member, in, targets, probabilities, ignored);
    member.operations().run(kernels::CrossEntropyInputGrad{rows, static_cast<int>(in[0]->shape.back()),
                                                           probabilities.data, targets.data, 1, grads[0].data});
    // How much the loss counts is known to the device alone.
    member.call(TensorOperation::ScaleBy, {count(grads[0])}, {grads[0].data.data(), grad.data.data()},
                grads[0].data.data());
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
    const std::string_view name = operations()[node.operation].name;
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
                             fmt::format("{} can be shared out, but not run here", operations()[node.operation].name),
                             "use another operation"});
    return found;
}

Tensor forward(MemberDevice& member, const Node& node, const Operands& operands, const LocalPart& part)
{
    return mathsOf(node)->forward(member, node, operands, part);
}

std::vector<Tensor> backward(MemberDevice& member, const Node& node, const Operands& operands, const Tensor& result,
                             const Tensor& resultGrad, const LocalPart& part)
{
    return mathsOf(node)->backward(member, node, operands, result, resultGrad, part);
}

} // namespace pipewright::sharding
