// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/expertmaths.h"

#include "executor/stage/kernelsettings.h"

#include <algorithm>
#include <cmath>

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

/// Of every token for all experts, as its router makes them of the logits.
Tensor probabilities(MemberDevice& member, const kernels::Router& router, const Tensor& logits)
{
    Tensor out = member.make(logits.shape);
    switch (router.kind) {
    case kernels::RouterKind::Sigmoid:
        member.call(TensorOperation::Sigmoid, {count(logits)}, {logits.data.data()}, out.data.data());
        return out;
    case kernels::RouterKind::Softmax: break;
    }
    const std::int64_t columns = logits.shape.back(), rows = count(logits) / columns;
    const Tensor logSum = member.make({rows});
    member.call(TensorOperation::RowLogSum, {rows, columns}, {logits.data.data()}, logSum.data.data());
    member.call(TensorOperation::Softmax, {rows, columns}, {logits.data.data(), logSum.data.data()}, out.data.data());
    return out;
}

/// How Route and RouteGrad make weights of probabilities (kernels/tensoritems.h).
std::int64_t weighting(const kernels::Router& router)
{
    return (router.normalised ? 1 : 0) + (router.kind == kernels::RouterKind::Sigmoid ? 2 : 0);
}

/// The experts that every token visits.
MemberDevice::Whole chosen(MemberDevice& member, const kernels::Router& router, const Operands& in)
{
    const auto copies =
        in[0]->elements() / static_cast<std::size_t>(router.experts) * static_cast<std::size_t>(router.perToken);
    const Tensor scores = member.make(in[0]->shape), weights = member.make({static_cast<std::int64_t>(copies)});
    const MemberDevice::Whole choices = member.makeWhole(copies), rows = member.makeWhole(copies),
                              begin = member.makeWhole(static_cast<std::size_t>(router.experts) + 1);
    member.operations().copy(std::span<const float>(in[0]->data), scores.data);
    member.operations().run(
        kernels::RouteTokens{router, in.size() > 1 ? std::span<const float>(in[1]->data) : std::span<const float>(),
                             scores.data, choices.data, rows.data, weights.data, begin.data});
    return choices;
}

Tensor route(MemberDevice& member, const Node& node, const Operands& in, const LocalPart&)
{
    Shape shape = in[0]->shape;
    shape.push_back(node.shape.back());
    Tensor out = member.zeros(shape);
    if (out.elements() == 0)
        return out;
    const kernels::Router router = routerOf(node, in[0]->shape);
    const MemberDevice::Whole choices = chosen(member, router, in);
    const Tensor p = probabilities(member, router, *in[0]), taken = member.zeros({shape[0], shape[2]});
    kernels::TensorCall place{};
    place.operation = TensorOperation::Route;
    std::copy(shape.begin(), shape.end(), place.size);
    place.size[4] = router.perToken;
    place.size[5] = weighting(router);
    place.number = router.scale;
    place.in[0] = p.data.data();
    place.out = out.data.data();
    place.scratch = taken.data.data();
    place.whole = choices.data.data();
    member.operations().run(place);
    return out;
}

// A correction of the choice has no gradient: in its place are the copies that visited each expert.
Gradients routeBack(MemberDevice& member, const Node& node, const Operands& in, const Tensor& result,
                    const Tensor& grad, const LocalPart& part)
{
    Gradients grads(in.size());
    if (in.size() > 1 && part.weightGrads)
        grads[1] = member.zeros(in[1]->shape);
    const bool counts = grads.size() > 1 && part.weightGrads && part.countsOnce;
    if (result.elements() == 0) {
        grads[0] = member.zeros(in[0]->shape);
        return grads;
    }
    const kernels::Router router = routerOf(node, in[0]->shape);
    const Shape& shape = result.shape;
    if (part.inputGrads) {
        grads[0] = member.make(in[0]->shape);
        const Tensor p = probabilities(member, router, *in[0]);
        member.call(TensorOperation::RouteGrad, {shape[0], shape[1], shape[2], shape[3], 0, weighting(router)},
                    {result.data.data(), p.data.data(), grad.data.data()}, grads[0].data.data(), router.scale);
    }
    if (counts) {
        const Tensor visits = member.make(in[0]->shape);
        member.call(TensorOperation::Visits, {shape[0], shape[1], shape[2], shape[3]}, {result.data.data()},
                    visits.data.data());
        member.call(TensorOperation::SumRepeated, {count(visits), shape[2]}, {visits.data.data()},
                    grads[1].data.data());
    }
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
    // Not "balance": the term needs the copies of all members' tokens.
    {"route", route, routeBack, 2, "top_k capacity unnormalised scale sigmoid groups groups_per_token"},
    {"dispatch", dispatch, dispatchBack, 2},
    {"expert_linear", expertLinear, expertLinearBack, 3},
    {"combine", combine, combineBack, 2},
};

} // namespace

bool routesTokens(const Node& node)
{
    return node.leaf == Leaf::None && operations()[static_cast<std::size_t>(node.operation)].name == "route";
}

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

std::int64_t chosenPerToken(const Node& node)
{
    return static_cast<std::int64_t>(node.attributes.at("top_k"));
}

std::span<const NodeMaths> expertMaths()
{
    return expertTable;
}

} // namespace pipewright::sharding
