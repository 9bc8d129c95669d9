// SPDX-License-Identifier: GPL-3.0-or-later
// Norms, and the functions of an MLP. In a layer I computes the gradients of the norms' parameters, because it has the
// tensors that they need; in place the output's gradient is overwritten, so they come first.
#include "executor/stage/kernelsettings.h"
#include "executor/stage/stepwriter.h"

#include "core/base/diagnostic.h"

#include <utility>

namespace pipewright {

using kernels::ActivationKind;
using kernels::Store;

namespace {

/// Some rows of a norm.
struct NormRows {
    std::size_t first = 0, firstOfResult = 0; ///< values before them
    int count = 0;
};

struct NormPlaces {
    int columns;
    float epsilon;
    ParameterPlace gain, shift; ///< without a shift it is an RMS norm
    std::vector<NormRows> parts;

    void forward(const StepContext& pass, const Place& input, const Place& output, Store store) const
    {
        for (const NormRows& part : parts) {
            const auto values = std::size_t(part.count) * std::size_t(columns);
            const auto in = pass.at(input).subspan(part.first, values),
                       out = pass.at(output).subspan(part.firstOfResult, values);
            if (shift.count > 0)
                pass.on().run(kernels::LayerNormForward{part.count, columns, in, pass.parameter(gain),
                                                        pass.parameter(shift), out, epsilon});
            else
                pass.on().run(
                    kernels::RmsNormForward{part.count, columns, epsilon, in, pass.parameter(gain), out, store});
        }
    }

    void inputGrad(const StepContext& pass, const Place& input, const Place& from, const Place& to, Store store) const
    {
        for (const NormRows& part : parts) {
            const auto [in, grad] = operands(pass, part, input, from);
            const auto inGrad = pass.at(to).subspan(part.first, in.size());
            if (shift.count > 0)
                pass.on().run(kernels::LayerNormInputGrad{part.count, columns, in, pass.parameter(gain), grad, inGrad,
                                                          epsilon, store});
            else
                pass.on().run(kernels::RmsNormInputGrad{part.count, columns, epsilon, in, pass.parameter(gain), grad,
                                                        inGrad, store});
        }
    }

    void weightGrad(const StepContext& pass, const Place& input, const Place& from) const
    {
        for (const NormRows& part : parts) {
            const auto [in, grad] = operands(pass, part, input, from);
            if (shift.count > 0)
                pass.on().run(kernels::LayerNormWeightGrad{part.count, columns, in, grad, pass.gradient(gain),
                                                           pass.gradient(shift), epsilon});
            else
                pass.on().run(kernels::RmsNormWeightGrad{part.count, columns, epsilon, in, grad, pass.gradient(gain)});
        }
    }

private:
    /// The rows of the input, and of the gradient.
    std::pair<std::span<float>, std::span<float>> operands(const StepContext& pass, const NormRows& part,
                                                           const Place& input, const Place& from) const
    {
        const auto values = std::size_t(part.count) * std::size_t(columns);
        return {pass.at(input).subspan(part.first, values), pass.at(from).subspan(part.firstOfResult, values)};
    }
};

NormPlaces normOf(const NodePlan& plan, int tensor)
{
    const int columns = int(plan.shape(plan.operand(tensor, 1)).front());
    NormPlaces of{columns,
                  normEpsilon(plan.node(tensor)),
                  plan.parameter(plan.operand(tensor, 1)),
                  plan.optionalParameter(tensor, 2),
                  {}};
    if (plan.firstRowOf(tensor) < 0) {
        of.parts = {{0, 0, int(plan.elements(tensor) / columns)}};
        return of;
    }
    const Shape& shape = plan.shape(tensor);
    for (std::int64_t sequence = 0; sequence < shape[0]; ++sequence)
        of.parts.push_back({std::size_t(sequence * shape[1] * columns), std::size_t(sequence * columns), 1});
    return of;
}

void norm(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const NormPlaces of = normOf(plan, tensor);
    if (of.shift.count > 0 && plan.addsToStream(tensor))
        throw Error(plan.node(tensor).name, "a layer norm cannot be added to other values here",
                    "use a model without biases, or without post_norm");
    writer.forward([of, input = plan.read(plan.operand(tensor, 0)), output = plan.value(tensor),
                    store = plan.storeOf(tensor)](const StepContext& pass) { of.forward(pass, input, output, store); });
}

void normInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const int to = plan.operand(tensor, 0), first = plan.firstRowOf(tensor);
    if (first >= 0)
        writer.empty(to); // the other rows have no gradient
    const auto [place, store] = plan.isOnStream(to) ? writer.streamGradient(plan.isOnStream(tensor))
                                                    : StepWriter::Target{plan.gradient(to), Store::Replace};
    const NormPlaces of = normOf(plan, tensor);
    const Place input = plan.read(to), from = plan.gradient(first >= 0 ? first : tensor);
    writer.parameterGrad([of, input, from](const StepContext& pass) { of.weightGrad(pass, input, from); });
    writer.inputGrad([of, input, from, place = place, store = store](const StepContext& pass) {
        of.inputGrad(pass, input, from, place, store);
    });
}

void activation(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    if (plan.isFused(tensor))
        return;
    if (const int by = plan.reader(tensor); by >= 0 && plan.operation(by) == "multiply")
        return; // the gate of a gated MLP, computed together with the factor
    writer.forward([kind = activationKind(plan.operation(tensor)), input = plan.read(plan.operand(tensor, 0)),
                    output = plan.value(tensor)](const StepContext& pass) {
        pass.on().run(kernels::ActivationForward{kind, pass.at(input), pass.at(output)});
    });
}

void activationInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    if (plan.isFused(tensor))
        return;
    if (const int by = plan.reader(tensor); by >= 0 && plan.operation(by) == "multiply")
        return;
    writer.inputGrad([kind = activationKind(plan.operation(tensor)), input = plan.read(plan.operand(tensor, 0)),
                      grad = plan.gradient(tensor),
                      to = plan.gradient(plan.operand(tensor, 0))](const StepContext& pass) {
        pass.on().run(kernels::ActivationInputGrad{kind, pass.at(input), pass.at(grad), pass.at(to)});
    });
}

/// A gated MLP's function of both halves: of an activation times the factor, or one of both.
struct Gated {
    kernels::ActivationKind kind;
    int gate, factor;
};

Gated gatedOf(const NodePlan& plan, int tensor)
{
    const int gate = plan.operand(tensor, 0), factor = plan.operand(tensor, 1);
    if (plan.operation(tensor) == "clamped_silu")
        return {ActivationKind::ClampedSilu, gate, factor};
    if (plan.operation(gate).empty() || !plan.isActivation(gate))
        throw Error(plan.node(tensor).name, "stages multiply only what an activation made", "use a gated MLP");
    return {activationKind(plan.operation(gate)), plan.operand(gate, 0), factor};
}

void gated(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const Gated of = gatedOf(plan, tensor);
    writer.forward([kind = of.kind, gate = plan.read(of.gate), factor = plan.read(of.factor),
                    output = plan.value(tensor)](const StepContext& pass) {
        pass.on().run(kernels::GatedForward{kind, pass.at(gate), pass.at(factor), pass.at(output)});
    });
}

void gatedInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const Gated of = gatedOf(plan, tensor);
    writer.inputGrad([kind = of.kind, gate = plan.read(of.gate), factor = plan.read(of.factor),
                      grad = plan.gradient(tensor), gateGrad = plan.gradient(of.gate),
                      factorGrad = plan.gradient(of.factor)](const StepContext& pass) {
        pass.on().run(kernels::GatedInputGrad{kind, pass.at(gate), pass.at(factor), pass.at(grad), pass.at(gateGrad),
                                              pass.at(factorGrad)});
    });
}

constexpr OperationSteps normTable[] = {
    {"layer_norm", norm, normInputGrad},
    {"rms_norm", norm, normInputGrad},
    {"head_norm", norm, normInputGrad},
    {"gelu", activation, activationInputGrad},
    {"gelu_erf", activation, activationInputGrad},
    {"silu", activation, activationInputGrad},
    {"tanh", activation, activationInputGrad},
    {"multiply", gated, gatedInputGrad},
    {"clamped_silu", gated, gatedInputGrad},
    {"add"}, // what is added to the stream is written there by the operation that makes it
};

} // namespace

std::span<const OperationSteps> normSteps()
{
    return normTable;
}

} // namespace pipewright
