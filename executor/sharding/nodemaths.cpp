// SPDX-License-Identifier: GPL-3.0-or-later
// One pair of functions per kind of node, found by name in a table: what it computes and the gradients of its operands.
// Each calls kernels for its shapes; the collectives between nodes are membercollectives.h's.
#include "executor/sharding/nodemaths.h"

#include "core/base/formattedtext.h"
#include "executor/sharding/attentionmaths.h"
#include "executor/sharding/expertmaths.h"
#include "executor/sharding/plainmaths.h"
#include "executor/stage/kernelsettings.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

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
    if (in[1]->elements() == 0) { // no inputs here: only the bias
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

Tensor layerNorm(MemberDevice& member, const Node& node, const Operands& in, const LocalPart&)
{
    Tensor out = member.make(in[0]->shape);
    if (out.elements() == 0)
        return out;
    const int columns = static_cast<int>(in[0]->shape.back());
    const Tensor shift = in.size() > 2 ? *in[2] : member.zeros({columns});
    member.operations().run(kernels::LayerNormForward{static_cast<int>(out.elements()) / columns, columns, in[0]->data,
                                                      in[1]->data, shift.data, out.data, normEpsilon(node)});
    return out;
}

Gradients layerNormBack(MemberDevice& member, const Node& node, const Operands& in, const Tensor&, const Tensor& grad,
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
        member.operations().run(kernels::LayerNormInputGrad{rows, columns, in[0]->data, in[1]->data, grad.data,
                                                            grads[0].data, normEpsilon(node)});
    if (part.weightGrads && rows > 0)
        member.operations().run(kernels::LayerNormWeightGrad{rows, columns, in[0]->data, grad.data, grads[1].data,
                                                             grads[2].data, normEpsilon(node)});
    grads.resize(in.size());
    return grads;
}

/// Rows that are as long as the gains: whole rows, or one per head.
struct NormRows {
    int rows, columns;
    explicit NormRows(const Operands& in)
        : rows(static_cast<int>(in[0]->elements() / in[1]->elements())), columns(static_cast<int>(in[1]->elements()))
    {
    }
};

Tensor rmsNorm(MemberDevice& member, const Node& node, const Operands& in, const LocalPart&)
{
    Tensor out = member.make(in[0]->shape);
    const NormRows is(in);
    if (is.rows > 0)
        member.operations().run(
            kernels::RmsNormForward{is.rows, is.columns, normEpsilon(node), in[0]->data, in[1]->data, out.data});
    return out;
}

Gradients rmsNormBack(MemberDevice& member, const Node& node, const Operands& in, const Tensor&, const Tensor& grad,
                      const LocalPart& part)
{
    Gradients grads(2);
    const NormRows is(in);
    if (part.inputGrads)
        grads[0] = member.make(in[0]->shape);
    if (part.weightGrads)
        grads[1] = member.zeros(in[1]->shape);
    if (part.inputGrads && is.rows > 0)
        member.operations().run(kernels::RmsNormInputGrad{is.rows, is.columns, normEpsilon(node), in[0]->data,
                                                          in[1]->data, grad.data, grads[0].data,
                                                          kernels::Store::Replace});
    if (part.weightGrads && is.rows > 0)
        member.operations().run(
            kernels::RmsNormWeightGrad{is.rows, is.columns, normEpsilon(node), in[0]->data, grad.data, grads[1].data});
    return grads;
}

Tensor softCap(MemberDevice& member, const Node& node, const Operands& in, const LocalPart&)
{
    Tensor out = member.make(in[0]->shape);
    member.operations().copy(std::span<const float>(in[0]->data), out.data);
    if (out.elements() > 0)
        member.operations().run(kernels::SoftCap{static_cast<float>(node.attributes.at("cap")), out.data});
    return out;
}

Gradients softCapBack(MemberDevice& member, const Node& node, const Operands& in, const Tensor& result,
                      const Tensor& grad, const LocalPart&)
{
    Gradients grads{member.make(in[0]->shape)};
    member.operations().copy(std::span<const float>(grad.data), grads[0].data);
    if (grad.elements() > 0)
        member.operations().run(
            kernels::SoftCapGrad{static_cast<float>(node.attributes.at("cap")), result.data, grads[0].data});
    return grads;
}

using kernels::ActivationKind;

template<ActivationKind kind>
Tensor activated(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    Tensor out = member.make(in[0]->shape);
    if (out.elements() > 0)
        member.operations().run(kernels::ActivationForward{kind, in[0]->data, out.data});
    return out;
}

template<ActivationKind kind>
Gradients activatedBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                        const LocalPart&)
{
    Gradients grads{member.make(in[0]->shape)};
    if (grad.elements() > 0)
        member.operations().run(kernels::ActivationInputGrad{kind, in[0]->data, grad.data, grads[0].data});
    return grads;
}

Tensor clampedSilu(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    Tensor out = member.make(in[0]->shape);
    if (out.elements() > 0)
        member.operations().run(kernels::GatedForward{ActivationKind::ClampedSilu, in[0]->data, in[1]->data, out.data});
    return out;
}

Gradients clampedSiluBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                          const LocalPart&)
{
    Gradients grads{member.make(in[0]->shape), member.make(in[1]->shape)};
    if (grad.elements() > 0)
        member.operations().run(kernels::GatedInputGrad{ActivationKind::ClampedSilu, in[0]->data, in[1]->data,
                                                        grad.data, grads[0].data, grads[1].data});
    return grads;
}

/// Also computes the probabilities. Returns the number of rows.
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
    // The weight of the loss is a value in the device's memory, so the device scales by it.
    member.call(TensorOperation::ScaleBy, {count(grads[0])}, {grads[0].data.data(), grad.data.data()},
                grads[0].data.data());
    return grads;
}

constexpr NodeMaths kernelMaths[] = {
    {"linear", linear, linearBack, 3},
    {"gelu", activated<ActivationKind::GeluTanh>, activatedBack<ActivationKind::GeluTanh>, 1},
    {"gelu_erf", activated<ActivationKind::Gelu>, activatedBack<ActivationKind::Gelu>, 1},
    {"tanh", activated<ActivationKind::Tanh>, activatedBack<ActivationKind::Tanh>, 1},
    {"clamped_silu", clampedSilu, clampedSiluBack, 2},
    {"soft_cap", softCap, softCapBack, 1, "cap"},
    {"layer_norm", layerNorm, layerNormBack, 3, "epsilon"},
    {"rms_norm", rmsNorm, rmsNormBack, 2, "epsilon"},
    {"head_norm", rmsNorm, rmsNormBack, 2, "epsilon heads"},
    {"cross_entropy", crossEntropy, crossEntropyBack, 2},
};

const NodeMaths* mathsOf(const Node& node)
{
    const std::string_view name = operations()[node.operation].name;
    for (const std::span<const NodeMaths> table :
         {std::span<const NodeMaths>(kernelMaths), plainMaths(), attentionMaths(), expertMaths()})
        for (const NodeMaths& maths : table)
            if (maths.operation == name)
                return &maths;
    return nullptr;
}

} // namespace

Diagnostics whyNotRunnable(const TensorGraph& graph)
{
    Diagnostics found;
    const auto fault = [&found](const Node& node, std::string what, const char* hint) {
        found.push_back({Severity::Error, node.name, std::move(what), hint});
    };
    for (const Node& node : graph.nodes()) {
        if (node.leaf != Leaf::None)
            continue;
        const std::string_view name = operations()[node.operation].name;
        const NodeMaths* maths = mathsOf(node);
        if (!maths) {
            fault(node, fmt::format("{} can be shared out, but not run here", name), "use another operation");
            continue;
        }
        std::vector<std::string> unknown;
        if (node.operands.size() > maths->mostOperands)
            unknown.push_back(graph.node(node.operands.back()).name);
        for (const auto& [attribute, value] : node.attributes)
            if (!maths->knows(attribute))
                unknown.push_back(fmt::format("\"{}\"", attribute));
        if (!unknown.empty())
            fault(
                node,
                fmt::format("{} with {} can be shared out, but not run here", name, pipewright::joined(unknown, ", ")),
                "leave this out");
        if (const char* why = whyNotHeads(graph, node))
            fault(node, why, "give queries, keys and values heads of one size");
        if (const char* why = whyNotRouted(graph, node))
            fault(node, why, "give every group as many experts, of which a token can visit enough");
        // Each would be read as if it had other rows.
        const auto rowsOf = [&](std::size_t operand, std::size_t dim) {
            return graph.node(node.operands[operand]).shape[dim];
        };
        if (name == "positions" && rowsOf(1, 0) != rowsOf(0, 1))
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
