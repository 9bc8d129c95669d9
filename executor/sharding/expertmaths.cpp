// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/expertmaths.h"

#include <algorithm>

namespace pipewright::sharding {

namespace {

using Gradients = std::vector<Tensor>;
using kernels::TensorOperation;

/// Calls an operation on weights [group, token, expert, slot]; `width` is the width of a token.
void callSlots(MemberDevice& member, TensorOperation operation, const Shape& weights, std::int64_t width,
               std::initializer_list<const float*> in, Tensor& out)
{
    member.call(operation, {weights[0], weights[1], weights[2], weights[3], width}, in, out.data.data());
}

Tensor probabilities(MemberDevice& member, const Tensor& logits)
{
    const std::int64_t columns = logits.shape.back(),
                       rows = logits.elements() == 0 ? 0 : static_cast<std::int64_t>(logits.elements()) / columns;
    const Tensor logSum = member.make({rows});
    member.call(TensorOperation::RowLogSum, {rows, columns}, {logits.data.data()}, logSum.data.data());
    Tensor out = member.make(logits.shape);
    member.call(TensorOperation::Softmax, {rows, columns}, {logits.data.data(), logSum.data.data()}, out.data.data());
    return out;
}

/// Whether the weights of a token's copies sum to the router's factor.
bool isNormalised(const Node& node)
{
    return attributeOr(node, "unnormalised", 0) == 0;
}
float factorOf(const Node& node)
{
    return static_cast<float>(attributeOr(node, "scale", 1));
}

Tensor route(MemberDevice& member, const Node& node, const Operands& in, const LocalPart&)
{
    Shape shape = in[0]->shape;
    shape.push_back(node.shape.back());
    Tensor out = member.zeros(shape);
    if (out.elements() == 0)
        return out;
    const Tensor p = probabilities(member, *in[0]), taken = member.zeros({shape[0], shape[2]});
    const std::int64_t tokens = shape[0] * shape[1], each = chosenPerToken(node);
    const MemberDevice::Whole choices = member.makeWhole(static_cast<std::size_t>(tokens * each));
    kernels::TensorCall choose{};
    choose.operation = TensorOperation::ChooseExperts;
    choose.size[0] = tokens;
    choose.size[1] = shape[2];
    choose.size[2] = each;
    choose.in[0] = p.data.data();
    choose.whole = choices.data.data();
    member.operations().run(choose);
    kernels::TensorCall place{};
    place.operation = TensorOperation::Route;
    std::copy(shape.begin(), shape.end(), place.size);
    place.size[4] = each;
    place.size[5] = isNormalised(node) ? 1 : 0;
    place.number = factorOf(node);
    place.in[0] = p.data.data();
    place.out = out.data.data();
    place.scratch = taken.data.data();
    place.whole = choices.data.data();
    member.operations().run(place);
    return out;
}

Gradients routeBack(MemberDevice& member, const Node& node, const Operands& in, const Tensor& result,
                    const Tensor& grad, const LocalPart&)
{
    Gradients grads{member.make(in[0]->shape)};
    if (result.elements() == 0)
        return {member.zeros(in[0]->shape)};
    const Tensor p = probabilities(member, *in[0]);
    const Shape& shape = result.shape;
    member.call(TensorOperation::RouteGrad, {shape[0], shape[1], shape[2], shape[3], 0, isNormalised(node) ? 1 : 0},
                {result.data.data(), p.data.data(), grad.data.data()}, grads[0].data.data(), factorOf(node));
    return grads;
}

Tensor dispatch(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    const Shape &weights = in[0]->shape, &x = in[1]->shape;
    Tensor out = member.make(Shape{weights[0], weights[2], weights[3], x[2]});
    callSlots(member, TensorOperation::Dispatch, weights, x[2], {in[0]->data.data(), in[1]->data.data()}, out);
    return out;
}

Gradients dispatchBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                       const LocalPart&)
{
    Gradients grads{member.zeros(in[0]->shape), member.make(in[1]->shape)};
    callSlots(member, TensorOperation::DispatchGrad, in[0]->shape, in[1]->shape[2],
              {in[0]->data.data(), grad.data.data()}, grads[1]);
    return grads;
}

Tensor combine(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    const Shape &weights = in[0]->shape, &y = in[1]->shape;
    Tensor out = member.make(Shape{weights[0], weights[1], y[3]});
    callSlots(member, TensorOperation::Combine, weights, y[3], {in[0]->data.data(), in[1]->data.data()}, out);
    return out;
}

Gradients combineBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                      const LocalPart&)
{
    Gradients grads{member.make(in[0]->shape), member.make(in[1]->shape)};
    const std::int64_t width = in[1]->shape[3];
    callSlots(member, TensorOperation::CombineWeightsGrad, in[0]->shape, width,
              {in[0]->data.data(), grad.data.data(), in[1]->data.data()}, grads[0]);
    callSlots(member, TensorOperation::CombineSlotsGrad, in[0]->shape, width, {in[0]->data.data(), grad.data.data()},
              grads[1]);
    return grads;
}

/// Calls `work(first row of x, expert)` with the slots of one expert in one group.
template<typename Work>
void forEachExpert(const Shape& x, Work work)
{
    for (std::size_t g = 0; g < static_cast<std::size_t>(x[0]); ++g)
        for (std::size_t e = 0; e < static_cast<std::size_t>(x[1]); ++e)
            work((g * static_cast<std::size_t>(x[1]) + e) * static_cast<std::size_t>(x[2]), e);
}

std::span<float> piece(const Tensor& values, std::size_t first, std::size_t count)
{
    return values.data.subspan(first, count);
}

Tensor expertLinear(MemberDevice& member, const Node&, const Operands& in, const LocalPart& part)
{
    const Shape &x = in[0]->shape, &w = in[1]->shape;
    const auto rows = static_cast<std::size_t>(x[2]), inputs = static_cast<std::size_t>(w[2]),
               outputs = static_cast<std::size_t>(w[1]);
    const bool bias = in.size() > 2 && part.countsOnce;
    if (rows * outputs == 0)
        return member.zeros(Shape{x[0], x[1], x[2], w[1]});
    Tensor out = inputs == 0 ? member.zeros(Shape{x[0], x[1], x[2], w[1]}) : member.make(Shape{x[0], x[1], x[2], w[1]});
    forEachExpert(x, [&](std::size_t first, std::size_t e) {
        const std::span<float> made = piece(out, first * outputs, rows * outputs);
        const std::span<const float> shift =
            bias ? std::span<const float>(piece(*in[2], e * outputs, outputs)) : std::span<const float>();
        if (inputs > 0)
            member.operations().run(
                kernels::LinearForward{{static_cast<int>(rows), static_cast<int>(inputs), static_cast<int>(outputs)},
                                       piece(*in[0], first * inputs, rows * inputs),
                                       piece(*in[1], e * inputs * outputs, inputs * outputs),
                                       shift,
                                       made,
                                       kernels::Store::Replace});
        else if (bias) // no inputs here: only the bias
            member.call(TensorOperation::AddRepeated,
                        {static_cast<std::int64_t>(made.size()), static_cast<std::int64_t>(outputs)},
                        {made.data(), shift.data()}, made.data());
    });
    return out;
}

Gradients expertLinearBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                           const LocalPart& part)
{
    const Shape &x = in[0]->shape, &w = in[1]->shape;
    Gradients grads(in.size());
    if (part.inputGrads)
        grads[0] = member.zeros(x);
    for (std::size_t o = 1; o < in.size() && part.weightGrads; ++o)
        grads[o] = member.zeros(in[o]->shape);
    const auto rows = static_cast<std::size_t>(x[2]), inputs = static_cast<std::size_t>(w[2]),
               outputs = static_cast<std::size_t>(w[1]);
    const kernels::LinearShape shape{static_cast<int>(rows), static_cast<int>(inputs), static_cast<int>(outputs)};
    if (rows * outputs == 0)
        return grads;
    forEachExpert(x, [&](std::size_t first, std::size_t e) {
        const auto gradRows = piece(grad, first * outputs, rows * outputs);
        const std::span<float> biasGrad =
            in.size() > 2 && part.weightGrads ? piece(grads[2], e * outputs, outputs) : std::span<float>();
        if (inputs == 0) {
            if (!biasGrad.empty())
                member.call(TensorOperation::SumRepeated,
                            {static_cast<std::int64_t>(gradRows.size()), static_cast<std::int64_t>(outputs)},
                            {gradRows.data()}, biasGrad.data());
            return;
        }
        if (part.inputGrads)
            member.operations().run(kernels::LinearInputGrad{shape, gradRows,
                                                             piece(*in[1], e * inputs * outputs, inputs * outputs),
                                                             piece(grads[0], first * inputs, rows * inputs)});
        if (part.weightGrads)
            member.operations().run(
                kernels::LinearWeightGrad{shape, piece(*in[0], first * inputs, rows * inputs), gradRows,
                                          piece(grads[1], e * inputs * outputs, inputs * outputs), biasGrad});
    });
    return grads;
}

constexpr NodeMaths expertTable[] = {
    {"route", route, routeBack, 1, "top_k capacity unnormalised scale"},
    {"dispatch", dispatch, dispatchBack, 2},
    {"expert_linear", expertLinear, expertLinearBack, 3},
    {"combine", combine, combineBack, 2},
};

} // namespace

bool routesTokens(const Node& node)
{
    return node.leaf == Leaf::None && operations()[static_cast<std::size_t>(node.operation)].name == "route";
}

std::int64_t chosenPerToken(const Node& node)
{
    return static_cast<std::int64_t>(node.attributes.at("top_k"));
}

std::span<const NodeMaths> expertMaths()
{
    return expertTable;
}

} // namespace pipewright::sharding
