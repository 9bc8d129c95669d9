// SPDX-License-Identifier: GPL-3.0-or-later
// Products with weights. An activation between two of them is computed by the products, where kernels can.
#include "executor/stage/stepwriter.h"

namespace pipewright {

namespace {

using kernels::Store;

struct LinearPlaces {
    kernels::LinearShape shape;
    ParameterPlace weight, bias;
};

LinearPlaces linearOf(const NodePlan& plan, int tensor)
{
    const Shape& weight = plan.shape(plan.operand(tensor, 1));
    return {{plan.rows(tensor), int(weight[1]), int(weight[0])},
            plan.parameter(plan.operand(tensor, 1)),
            plan.optionalParameter(tensor, 2)};
}

/// The rows of every picture's patches, of the product and of what it reads.
template<class Call>
void forEachPicture(const StepContext& pass, int pictures, const LinearPlaces& linear, const Place& input,
                    std::span<float> output, Call call)
{
    const std::span<float> in = pass.at(input);
    const std::size_t ofInput = in.size() / std::size_t(pictures), ofOutput = output.size() / std::size_t(pictures),
                      width = std::size_t(linear.shape.outputs);
    const kernels::LinearShape shape{int(ofOutput / width) - 1, linear.shape.inputs, linear.shape.outputs};
    for (std::size_t picture = 0; picture < std::size_t(pictures); ++picture)
        call(shape, in.subspan(picture * ofInput, ofInput),
             output.subspan(picture * ofOutput + width, ofOutput - width));
}

void linear(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const LinearPlaces of = linearOf(plan, tensor);
    const int from = plan.operand(tensor, 0);
    const Place input = plan.read(from);
    if (plan.isBytes(from)) // of pictures
        writer.forward([input](const StepContext& pass) {
            pass.on().run(kernels::FromBytes{pass.inputs, pass.at(input)});
        });
    if (plan.isBehindClassToken(tensor)) {
        writer.forward([of, input, pictures = int(plan.shape(tensor)[0])](const StepContext& pass) {
            forEachPicture(pass, pictures, of, input, pass.stream,
                           [&](kernels::LinearShape shape, std::span<const float> in, std::span<float> out) {
                               pass.on().run(kernels::LinearForward{shape, in, pass.parameter(of.weight),
                                                                    pass.parameter(of.bias), out, Store::Replace});
                           });
        });
        return;
    }
    const Place output = plan.value(tensor);
    const int by = plan.reader(tensor);
    std::optional<Place> activated;
    if (by >= 0 && plan.isActivation(by) && plan.isFused(by))
        activated = plan.value(by);
    writer.forward([of, input, output, activated, store = plan.storeOf(tensor)](const StepContext& pass) {
        pass.on().run(kernels::LinearForward{of.shape, pass.at(input), pass.parameter(of.weight),
                                             pass.parameter(of.bias), pass.at(output), store,
                                             activated ? pass.at(*activated) : std::span<float>()});
    });
}

/// The first of the three products that plain attention reads, as one product with the outputs of all.
LinearPlaces withAllOfPlain(LinearPlaces of)
{
    of.shape.outputs *= 3;
    of.weight.count *= 3;
    of.bias.count *= 3;
    return of;
}

bool isDoneByTheFirst(const NodePlan& plan, int tensor)
{
    return plan.isPartOfPlain(tensor) && plan.operand(plan.reader(tensor), 0) != tensor;
}

LinearPlaces backwardOf(const NodePlan& plan, int tensor)
{
    return plan.isPartOfPlain(tensor) ? withAllOfPlain(linearOf(plan, tensor)) : linearOf(plan, tensor);
}

void linearInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const int to = plan.operand(tensor, 0);
    if (!plan.needsGradient(to) || isDoneByTheFirst(plan, tensor))
        return;
    const auto [place, store] = writer.gradientOf(to);
    std::optional<Place> activationInput;
    if (plan.isActivation(to) && plan.isFused(to))
        activationInput = plan.read(plan.operand(to, 0));
    writer.inputGrad([of = backwardOf(plan, tensor), from = plan.gradient(tensor), place = place, store = store,
                      activationInput](const StepContext& pass) {
        pass.on().run(kernels::LinearInputGrad{of.shape, pass.at(from), pass.parameter(of.weight), pass.at(place),
                                               store,
                                               activationInput ? pass.at(*activationInput) : std::span<const float>()});
    });
}

void linearWeightGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    if (isDoneByTheFirst(plan, tensor))
        return;
    const LinearPlaces of = backwardOf(plan, tensor);
    const Place input = plan.read(plan.operand(tensor, 0)), grad = plan.gradient(tensor);
    if (plan.isBehindClassToken(tensor)) {
        writer.weightGrad([of, input, grad, pictures = int(plan.shape(tensor)[0])](const StepContext& pass) {
            forEachPicture(pass, pictures, of, input, pass.at(grad),
                           [&](kernels::LinearShape shape, std::span<const float> in, std::span<const float> out) {
                               pass.on().run(kernels::LinearWeightGrad{shape, in, out, pass.gradient(of.weight),
                                                                       pass.gradient(of.bias)});
                           });
        });
        return;
    }
    writer.weightGrad([of, input, grad](const StepContext& pass) {
        pass.on().run(kernels::LinearWeightGrad{of.shape, pass.at(input), pass.at(grad), pass.gradient(of.weight),
                                                pass.gradient(of.bias)});
    });
}

struct ExpertPlaces {
    kernels::ExpertsShape shape;
    Place begin;
    ParameterPlace weight, bias;
};

ExpertPlaces expertsOf(const NodePlan& plan, int tensor)
{
    const Shape& weight = plan.shape(plan.operand(tensor, 1));
    const ParameterPlace place = plan.parameter(plan.operand(tensor, 1));
    return {{int(weight[0]), int(weight[2]), int(weight[1]), place.stride},
            plan.own(plan.route(tensor), "begin", weight[0] + 1),
            place,
            plan.optionalParameter(tensor, 2)};
}

void expertLinear(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    writer.forward([of = expertsOf(plan, tensor), input = plan.read(plan.operand(tensor, 0)),
                    output = plan.value(tensor)](const StepContext& pass) {
        pass.on().run(kernels::ExpertsForward{of.shape, pass.integers(of.begin), pass.at(input),
                                              pass.parameter(of.weight), pass.at(output), pass.parameter(of.bias),
                                              of.bias.stride});
    });
}

void expertLinearInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const auto [place, store] = writer.gradientOf(plan.operand(tensor, 0));
    writer.inputGrad([of = expertsOf(plan, tensor), from = plan.gradient(tensor), place = place,
                      store = store](const StepContext& pass) {
        pass.on().run(kernels::ExpertsInputGrad{of.shape, pass.integers(of.begin), pass.at(from),
                                                pass.parameter(of.weight), pass.at(place), store});
    });
}

void expertLinearWeightGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    writer.weightGrad([of = expertsOf(plan, tensor), input = plan.read(plan.operand(tensor, 0)),
                       grad = plan.gradient(tensor)](const StepContext& pass) {
        pass.on().run(kernels::ExpertsWeightGrad{of.shape, pass.integers(of.begin), pass.at(input), pass.at(grad),
                                                 pass.gradient(of.weight), pass.gradient(of.bias), of.bias.stride});
    });
}

constexpr OperationSteps productTable[] = {
    {"linear", linear, linearInputGrad, linearWeightGrad},
    {"expert_linear", expertLinear, expertLinearInputGrad, expertLinearWeightGrad},
};

} // namespace

std::span<const OperationSteps> productSteps()
{
    return productTable;
}

} // namespace pipewright
