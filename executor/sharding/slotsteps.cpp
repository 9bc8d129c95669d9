// SPDX-License-Identifier: GPL-3.0-or-later
// Mixture of experts with slots: every token chooses its most likely experts, which take tokens in order until their
// slots are full. Groups of tokens are independent, so a device that has some of them routes these exactly as a device
// with all of them would, and pieces of the slots can be sent to the members that have the experts. The choice is not
// differentiated, the weights are. Weights are [group, token, expert, slot].
#include "executor/sharding/lonesteps.h"
#include "executor/stage/kernelsettings.h"

#include <algorithm>

namespace pipewright::sharding {

using kernels::TensorOperation;

namespace {

/// Of every token for all experts, as its router makes them of the logits. `logSum`: the name of scratch.
std::vector<pipewright::Step> probabilities(const NodePlan& plan, const kernels::Router& router,
                                            std::string_view logSum, const Place& out)
{
    switch (router.kind) {
    case kernels::RouterKind::Sigmoid:
        return {tensorStep(TensorOperation::Sigmoid, {plan.elements(0)}, {plan.value(0)}, out)};
    case kernels::RouterKind::Softmax: break;
    }
    const std::int64_t columns = plan.width(0), rows = plan.rows(0);
    const Place sums = plan.workspace(logSum, rows);
    return {tensorStep(TensorOperation::RowLogSum, {rows, columns}, {plan.value(0)}, sums),
            tensorStep(TensorOperation::Softmax, {rows, columns}, {plan.value(0), sums}, out)};
}

/// How Route and RouteGrad make weights of probabilities (kernels/tensoritems.h).
std::int64_t weighting(const kernels::Router& router)
{
    return (router.normalised ? 1 : 0) + (router.kind == kernels::RouterKind::Sigmoid ? 2 : 0);
}

void fill(StepWriter& writer, void (StepWriter::*add)(pipewright::Step), const Place& zeros)
{
    (writer.*add)([zeros](const StepContext& pass) { pass.on().run(kernels::Fill{pass.at(zeros), 0}); });
}

void route(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    const kernels::Router router = routerOf(plan.node(result), plan.shape(0));
    const std::int64_t copies = std::int64_t(plan.rows(0)) * router.perToken;
    const Shape& shape = plan.shape(result);
    const Place scores = plan.own(result, "scores", plan.elements(0)), weights = plan.own(result, "weights", copies),
                choices = plan.own(result, "choices", copies), rows = plan.own(result, "rows", copies),
                begin = plan.own(result, "begin", router.experts + 1),
                taken = plan.own(result, "taken", shape[0] * shape[2]), output = plan.value(result);
    writer.copy(plan.value(0), scores);
    writer.forward([=, correction = plan.optionalParameter(result, 1)](const StepContext& pass) {
        pass.on().run(kernels::RouteTokens{router, pass.parameter(correction), pass.at(scores), pass.integers(choices),
                                           pass.integers(rows), pass.at(weights), pass.integers(begin)});
    });
    const Place p = scores; // no longer needed
    for (pipewright::Step& step : probabilities(plan, router, "logSum", p))
        writer.forward(std::move(step));
    fill(writer, &StepWriter::forward, taken);
    fill(writer, &StepWriter::forward, output);
    kernels::TensorCall place{};
    place.operation = TensorOperation::Route;
    std::copy(shape.begin(), shape.end(), place.size);
    place.size[4] = router.perToken;
    place.size[5] = weighting(router);
    place.number = router.scale;
    writer.forward([=](const StepContext& pass) {
        kernels::TensorCall call = place;
        call.in[0] = pass.at(p).data();
        call.out = pass.at(output).data();
        call.scratch = pass.at(taken).data();
        call.whole = pass.integers(choices).data();
        pass.on().run(call);
    });
}

/// Of the load-balancing term (executor/stage/expertsteps.cpp): the gradient of every token's probability of an expert
/// is the same multiple of the expert's visits.
void balanceGrad(StepWriter& writer, int result, const Place& probabilities)
{
    const LonePlan& plan = loneOf(writer);
    const Node& node = plan.node(result);
    const std::int64_t rows = plan.rows(0), experts = plan.width(0);
    const double tokens = double(node.shape[0] * node.shape[1]); // of all members
    const auto weight =
        float(node.attribute("balance") * double(experts) / (tokens * tokens * plan.part().balanceOver));
    const Place visits = plan.visitsOfAll(experts), slopes = plan.workspace("d.visits", experts),
                each = plan.workspace("d.balance", rows * experts), dot = plan.workspace("d.dot", rows);
    writer.inputGrad(tensorStep(TensorOperation::Scale, {experts}, {visits}, slopes, weight));
    fill(writer, &StepWriter::inputGrad, each);
    writer.inputGrad(tensorStep(TensorOperation::AddRepeated, {rows * experts, experts}, {each, slopes}, each));
    writer.inputGrad(tensorStep(TensorOperation::RowDot, {rows, experts}, {each, probabilities}, dot));
    writer.inputGrad(tensorStep(TensorOperation::SoftmaxGrad, {rows, experts}, {probabilities, each, dot}, each));
    writer.inputGrad(tensorStep(TensorOperation::Add, {rows * experts}, {plan.gradient(0), each}, plan.gradient(0)));
}

void routeInputGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    const kernels::Router router = routerOf(plan.node(result), plan.shape(0));
    const Shape& shape = plan.shape(result);
    const Place p = plan.workspace("d.probabilities", plan.elements(0));
    for (pipewright::Step& step : probabilities(plan, router, "d.logSum", p))
        writer.inputGrad(std::move(step));
    writer.inputGrad(tensorStep(TensorOperation::RouteGrad,
                                {shape[0], shape[1], shape[2], shape[3], 0, weighting(router)},
                                {plan.value(result), p, plan.gradient(result)}, plan.gradient(0), router.scale));
    if (plan.node(result).attribute("balance") > 0)
        balanceGrad(writer, result, p);
}

// A correction of the choice has no gradient: in its place are the copies that visited each expert.
void routeWeightGrad(StepWriter& writer, int result)
{
    const LonePlan& plan = loneOf(writer);
    if (!plan.hasOperand(result, 1) || !plan.part().countsVisits)
        return;
    const Shape& shape = plan.shape(result);
    const Place visits = plan.workspace("visits", plan.elements(0));
    writer.weightGrad(
        tensorStep(TensorOperation::Visits, {shape[0], shape[1], shape[2], shape[3]}, {plan.value(result)}, visits));
    writer.weightGrad(
        tensorStep(TensorOperation::SumRepeated, {plan.elements(0), shape[2]}, {visits}, plan.gradient(1)));
}

/// Of tokens with some width, and the weights of operand 0.
pipewright::Step slotStep(const NodePlan& plan, TensorOperation operation, std::int64_t width,
                          std::initializer_list<Place> in, const Place& out)
{
    const Shape& weights = plan.shape(0);
    return tensorStep(operation, {weights[0], weights[1], weights[2], weights[3], width}, in, out);
}

void dispatch(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.forward(
        slotStep(plan, TensorOperation::Dispatch, plan.width(1), {plan.value(0), plan.value(1)}, plan.value(result)));
}
void dispatchGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    fill(writer, &StepWriter::inputGrad, plan.gradient(0));
    writer.inputGrad(slotStep(plan, TensorOperation::DispatchGrad, plan.width(1),
                              {plan.value(0), plan.gradient(result)}, plan.gradient(1)));
}

void combine(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.forward(
        slotStep(plan, TensorOperation::Combine, plan.width(1), {plan.value(0), plan.value(1)}, plan.value(result)));
}
void combineGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    const Place weights = plan.value(0), grad = plan.gradient(result);
    writer.inputGrad(slotStep(plan, TensorOperation::CombineWeightsGrad, plan.width(1), {weights, grad, plan.value(1)},
                              plan.gradient(0)));
    writer.inputGrad(
        slotStep(plan, TensorOperation::CombineSlotsGrad, plan.width(1), {weights, grad}, plan.gradient(1)));
}

/// The products of every expert with its slots, of one group after the other.
struct SlotProducts {
    kernels::LinearShape shape; ///< of one expert's
    std::size_t blocks, experts;
    ParameterPlace weight, bias;

    explicit SlotProducts(const NodePlan& plan)
        : shape{int(plan.shape(0)[2]), int(plan.shape(1)[2]), int(plan.shape(1)[1])},
          blocks(std::size_t(plan.shape(0)[0] * plan.shape(0)[1])), experts(std::size_t(plan.shape(0)[1])),
          weight(plan.parameter(1)), bias(plan.optionalParameter(0, 2))
    {
    }

    /// Calls visit(input, output, weight, bias) with each expert's parts of these.
    template<class T, class Visit>
    void forEach(std::span<float> input, std::span<float> output, std::span<T> weights, std::span<T> biases,
                 Visit visit) const
    {
        for (std::size_t b = 0; b < blocks; ++b)
            visit(part(input, blocks, b), part(output, blocks, b), part(weights, experts, b % experts),
                  part(biases, experts, b % experts));
    }

private:
    template<class T>
    static std::span<T> part(std::span<T> of, std::size_t parts, std::size_t number)
    {
        return of.subspan(of.size() / parts * number, of.size() / parts);
    }
};

void expertLinear(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.forward([of = SlotProducts(plan), from = plan.value(0), to = plan.value(result)](const StepContext& pass) {
        of.forEach(pass.at(from), pass.at(to), pass.parameter(of.weight), pass.parameter(of.bias),
                   [&](auto input, auto output, auto weight, auto bias) {
                       pass.on().run(kernels::LinearForward{of.shape, input, weight, bias, output});
                   });
    });
}

void expertLinearInputGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.inputGrad(
        [of = SlotProducts(plan), from = plan.gradient(result), to = plan.gradient(0)](const StepContext& pass) {
            of.forEach(pass.at(to), pass.at(from), pass.parameter(of.weight), {},
                       [&](auto inputGrad, auto outputGrad, auto weight, auto) {
                           pass.on().run(kernels::LinearInputGrad{of.shape, outputGrad, weight, inputGrad});
                       });
        });
}

void expertLinearWeightGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.weightGrad(
        [of = SlotProducts(plan), input = plan.value(0), grad = plan.gradient(result)](const StepContext& pass) {
            of.forEach(pass.at(input), pass.at(grad), pass.gradient(of.weight), pass.gradient(of.bias),
                       [&](auto in, auto outputGrad, auto weightGrad, auto biasGrad) {
                           pass.on().run(kernels::LinearWeightGrad{of.shape, in, outputGrad, weightGrad, biasGrad});
                       });
        });
}

constexpr OperationSteps slotTable[] = {
    {"route", route, routeInputGrad, routeWeightGrad},
    {"dispatch", dispatch, dispatchGrad},
    {"expert_linear", expertLinear, expertLinearInputGrad, expertLinearWeightGrad},
    {"combine", combine, combineGrad},
};

} // namespace

std::span<const OperationSteps> slotSteps()
{
    return slotTable;
}

} // namespace pipewright::sharding
