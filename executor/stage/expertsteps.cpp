// SPDX-License-Identifier: GPL-3.0-or-later
// A mixture of experts: a router chooses some experts for every token. Rows are sorted by expert, so that an expert's
// products are one call over its rows (productsteps.cpp); the results are added to their tokens with the router's
// weights. No token is dropped. The router learns through the weights and, where the model has one, a load-balancing
// term: the mean over layers and microbatches of coefficient · experts · the sum over experts of copies / tokens · mean
// probability. Its value is not in the losses that a run shows. A correction of the choice (DeepSeek-V3) has no
// gradient: in its place the number of copies that visited each expert is counted, and the optimizer step moves the
// correction by it (optimizer.h).
#include "executor/stage/kernelsettings.h"
#include "executor/stage/stepwriter.h"

namespace pipewright {

namespace {

/// Of a route node: its settings and its own tensors.
struct RoutePlaces {
    kernels::Router router;
    Place probabilities, choice, row, weight, begin;
    ParameterPlace correction;
};

RoutePlaces routeOf(const NodePlan& plan, int route)
{
    const int logits = plan.operand(route, 0);
    const kernels::Router router = routerOf(plan.node(route), plan.shape(logits));
    const std::int64_t copies = std::int64_t(plan.rows(logits)) * router.perToken;
    return {router,
            plan.own(route, "probabilities", plan.elements(logits)),
            plan.own(route, "choice", copies),
            plan.own(route, "row", copies),
            plan.own(route, "weight", copies),
            plan.own(route, "begin", router.experts + 1),
            plan.optionalParameter(route, 1)};
}

void route(StepWriter& writer, int tensor)
{
    writer.forward([of = routeOf(writer.plan, tensor)](const StepContext& pass) {
        pass.on().run(kernels::RouteTokens{of.router, pass.parameter(of.correction), pass.at(of.probabilities),
                                           pass.integers(of.choice), pass.integers(of.row), pass.at(of.weight),
                                           pass.integers(of.begin)});
    });
}

void routeWeightGrad(StepWriter& writer, int tensor)
{
    const RoutePlaces of = routeOf(writer.plan, tensor);
    if (of.correction.count == 0)
        return;
    writer.weightGrad([of](const StepContext& pass) {
        pass.on().run(kernels::CountCopies{pass.integers(of.begin), pass.gradient(of.correction)});
    });
}

void dispatch(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    writer.forward([of = routeOf(plan, plan.route(tensor)), width = int(plan.width(tensor)),
                    input = plan.read(plan.operand(tensor, 1)), output = plan.value(tensor)](const StepContext& pass) {
        pass.on().run(kernels::CopyToExperts{
            of.router.perToken, width, pass.integers(of.row), {}, pass.at(input), pass.at(output)});
    });
}

void dispatchInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const auto [place, store] = writer.gradientOf(plan.operand(tensor, 1));
    writer.inputGrad([of = routeOf(plan, plan.route(tensor)), width = int(plan.width(tensor)),
                      from = plan.gradient(tensor), place = place, store = store](const StepContext& pass) {
        pass.on().run(kernels::SumOfExperts{
            of.router.perToken, width, pass.integers(of.row), {}, pass.at(from), pass.at(place), store});
    });
}

void combine(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    writer.forward([of = routeOf(plan, plan.route(tensor)), width = int(plan.width(tensor)),
                    input = plan.read(plan.operand(tensor, 1)), output = plan.value(tensor),
                    store = plan.storeOf(tensor)](const StepContext& pass) {
        pass.on().run(kernels::SumOfExperts{of.router.perToken, width, pass.integers(of.row), pass.at(of.weight),
                                            pass.at(input), pass.at(output), store});
    });
}

// The gradients of the router's weights, back to its logits, and of the experts' results.
void combineInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const int route = plan.route(tensor), logits = plan.operand(route, 0), made = plan.operand(tensor, 1);
    const Node& of = plan.node(route);
    const double tokens = plan.rows(logits);
    const auto balance =
        float(of.attribute("balance") * double(plan.width(logits)) / (tokens * tokens * writer.settings.balanceOver));
    writer.inputGrad([of = routeOf(plan, route), width = int(plan.width(tensor)), balance, from = plan.gradient(tensor),
                      output = plan.read(made), outputGrad = plan.gradient(made),
                      logitsGrad = plan.gradient(logits)](const StepContext& pass) {
        const std::span<const std::int32_t> row = pass.integers(of.row);
        pass.on().run(kernels::RouteTokensGrad{of.router, width, pass.at(of.probabilities), pass.integers(of.choice),
                                               row, pass.at(from), pass.at(output), pass.at(logitsGrad), balance,
                                               pass.integers(of.begin)});
        pass.on().run(kernels::CopyToExperts{of.router.perToken, width, row, pass.at(of.weight), pass.at(from),
                                             pass.at(outputGrad)});
    });
}

constexpr OperationSteps expertTable[] = {
    {"route", route, nullptr, routeWeightGrad},
    {"dispatch", dispatch, dispatchInputGrad},
    {"combine", combine, combineInputGrad},
};

} // namespace

std::span<const OperationSteps> expertSteps()
{
    return expertTable;
}

} // namespace pipewright
