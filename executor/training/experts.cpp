// SPDX-License-Identifier: GPL-3.0-or-later
// Rows are sorted by expert, so that an expert's products are one call over its rows; the results are added to their
// tokens with the router's weights. I routes gradients the same way, W sums those of the matrices. O(chosen experts x
// tokens x width x ffn).
#include "executor/training/experts.h"

#include "core/model/transformer.h"
#include "executor/training/mlp.h"

#include <algorithm>

namespace pipewright {

using kernels::Store;

kernels::Router routerOf(const ModelShape& shape)
{
    const auto kind = [&] {
        switch (shape.routerScore) {
        case RouterScore::Softmax: return kernels::RouterKind::Softmax;
        case RouterScore::Sigmoid: return kernels::RouterKind::Sigmoid;
        }
        return kernels::RouterKind::Softmax;
    };
    return {shape.experts, shape.expertsPerToken,  shape.routerGroups,      shape.routerGroupsPerToken,
            kind(),        shape.routerNormalised, float(shape.routerScale)};
}

int expertLayersOf(const ModelShape& shape)
{
    return shape.experts > 0 ? std::max(shape.layers - shape.denseLayers, 0) : 0;
}

Experts::Experts(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
                 int microbatches)
    : m_rows(int(shape.tokens())), m_hidden(int(shape.hidden)), m_ffn(int(shape.expertFfn)),
      m_balance(float(shape.routerBalance * shape.experts
                      / (double(m_rows) * m_rows * microbatches * std::max(expertLayersOf(shape), 1)))),
      m_routing(routerOf(shape)), m_activation(kindOf(shape.activation)), m_norm(shape, parameters, layer, "ln2"),
      m_router(parameters, layer, "router"), m_fc1(parameters.at(layer, "experts.fc1.weight")),
      m_fc2(parameters.at(layer, "experts.fc2.weight")), m_normInput(layout.slice(layer, "ln2.input")),
      m_probabilities(layout.slice(layer, "router.probabilities")), m_choice(layout.slice(layer, "router.choice")),
      m_row(layout.slice(layer, "router.row")), m_weight(layout.slice(layer, "router.weight")),
      m_gate(layout.slice(layer, "experts.activationInput")), m_factor(layout.slice(layer, "experts.gateInput")),
      m_output(layout.slice(layer, "experts.output")), m_input(layout.slice(layer, "router.input")),
      m_begin(layout.slice(layer, "router.begin")), m_expertInput(layout.slice(layer, "experts.fc1.input")),
      m_fc2Input(layout.slice(layer, "experts.fc2.input")), m_routerGrad(layout.slice(layer, "router.outputGrad")),
      m_fc1Grad(layout.slice(layer, "experts.fc1.outputGrad")),
      m_fc2Grad(layout.slice(layer, "experts.fc2.outputGrad")), m_normGrad(layout.slice(layer, "d.ln")),
      m_expertGrad(layout.slice(layer, "d.experts"))
{
    if (const Parameter* correction = parameters.findAt(layer, "router.correction"))
        m_correction = *correction;
    if (const Parameter* bias = parameters.findAt(layer, "experts.fc1.bias"))
        m_fc1Bias = *bias;
    if (const Parameter* bias = parameters.findAt(layer, "experts.fc2.bias"))
        m_fc2Bias = *bias;
    if (shape.sharedExperts > 0) {
        const Linear fc1(parameters, layer, "shared.fc1");
        const int width = shape.sharedExperts * m_ffn;
        m_shared = Shared{fc1.part(0, width),
                          fc1.part(width, width),
                          Linear(parameters, layer, "shared.fc2"),
                          layout.slice(layer, "shared.activationInput"),
                          layout.slice(layer, "shared.gateInput"),
                          layout.slice(layer, "shared.fc2.input"),
                          layout.slice(layer, "shared.fc1.outputGrad"),
                          layout.slice(layer, "shared.fc2.outputGrad")};
    }
}

Experts::Fc1Grads Experts::fc1Grads(const StageMemory& memory, const Slice& slice)
{
    const std::span<float> all = memory.floats(slice);
    return {all.first(all.size() / 2), all.subspan(all.size() / 2)};
}

kernels::ExpertsShape Experts::fc1Shape() const
{
    return {m_routing.experts, m_hidden, m_ffn, std::int64_t{2} * m_ffn * m_hidden};
}

kernels::ExpertsShape Experts::fc2Shape() const
{
    return {m_routing.experts, m_ffn, m_hidden, std::int64_t{m_ffn} * m_hidden};
}

void Experts::forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<float> input = memory.floats(m_input), probabilities = memory.floats(m_probabilities);
    const std::span<std::int32_t> row = memory.integers(m_row), begin = memory.integers(m_begin);
    on.copy(stream, memory.floats(m_normInput));
    m_norm.forward(on, m_rows, parameters, memory.floats(m_normInput), input);
    m_router.forward(on, m_rows, parameters, input, probabilities);
    on.run(kernels::RouteTokens{m_routing, m_correction ? m_correction->in(parameters) : std::span<const float>(),
                                probabilities, memory.integers(m_choice), row, memory.floats(m_weight), begin});

    const std::span<float> gate = memory.floats(m_gate), factor = memory.floats(m_factor),
                           fc2Input = memory.floats(m_fc2Input);
    const std::span<float> expertInput = memory.floats(m_expertInput), output = memory.floats(m_output);
    on.run(kernels::CopyToExperts{m_routing.perToken, m_hidden, row, {}, input, expertInput});
    on.run(kernels::ExpertsForward{fc1Shape(), begin, expertInput, fc1Weights(parameters, false), gate,
                                   fc1Biases(parameters, false), 2 * m_ffn});
    on.run(kernels::ExpertsForward{fc1Shape(), begin, expertInput, fc1Weights(parameters, true), factor,
                                   fc1Biases(parameters, true), 2 * m_ffn});
    on.run(kernels::GatedForward{m_activation, gate, factor, fc2Input});
    on.run(kernels::ExpertsForward{fc2Shape(), begin, fc2Input, m_fc2.in(parameters), output,
                                   m_fc2Bias ? m_fc2Bias->in(parameters) : std::span<const float>(), m_hidden});
    on.run(
        kernels::SumOfExperts{m_routing.perToken, m_hidden, row, memory.floats(m_weight), output, stream, Store::Add});
    if (!m_shared)
        return;
    const std::span<float> sharedGate = memory.floats(m_shared->gateValues),
                           sharedFactor = memory.floats(m_shared->factorValues),
                           sharedFc2Input = memory.floats(m_shared->fc2Input);
    m_shared->gate.forward(on, m_rows, parameters, input, sharedGate);
    m_shared->factor.forward(on, m_rows, parameters, input, sharedFactor);
    on.run(kernels::GatedForward{m_activation, sharedGate, sharedFactor, sharedFc2Input});
    m_shared->fc2.forward(on, m_rows, parameters, sharedFc2Input, stream, Store::Add);
}

void Experts::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                        std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<std::int32_t> row = memory.integers(m_row), begin = memory.integers(m_begin);
    const std::span<float> gate = memory.floats(m_gate), factor = memory.floats(m_factor);
    const Fc1Grads grads = fc1Grads(memory, m_fc1Grad);
    const std::span<float> expertGrad = memory.floats(m_expertGrad),
                           inputGrad = memory.floats(m_normGrad).first(stream.size());
    const std::span<float> fc2Grad = memory.floats(m_fc2Grad);
    on.run(kernels::RouteTokensGrad{m_routing, m_hidden, memory.floats(m_probabilities), memory.integers(m_choice), row,
                                    stream, memory.floats(m_output), memory.floats(m_routerGrad), m_balance, begin});
    on.run(kernels::CopyToExperts{m_routing.perToken, m_hidden, row, memory.floats(m_weight), stream, fc2Grad});
    on.run(kernels::ExpertsInputGrad{fc2Shape(), begin, fc2Grad, m_fc2.in(parameters), grads.gate, Store::Replace});
    on.run(kernels::GatedInputGrad{m_activation, gate, factor, grads.gate, grads.gate, grads.factor});
    on.run(kernels::ExpertsInputGrad{fc1Shape(), begin, grads.gate, fc1Weights(parameters, false), expertGrad,
                                     Store::Replace});
    on.run(kernels::ExpertsInputGrad{fc1Shape(), begin, grads.factor, fc1Weights(parameters, true), expertGrad,
                                     Store::Add});
    on.run(kernels::SumOfExperts{m_routing.perToken, m_hidden, row, {}, expertGrad, inputGrad, Store::Replace});
    m_router.inputGrad(on, m_rows, parameters, memory.floats(m_routerGrad), inputGrad, Store::Add);
    if (m_shared) {
        const Fc1Grads shared = fc1Grads(memory, m_shared->fc1Grad);
        on.copy(stream, memory.floats(m_shared->fc2Grad));
        m_shared->fc2.inputGrad(on, m_rows, parameters, stream, shared.gate);
        on.run(kernels::GatedInputGrad{m_activation, memory.floats(m_shared->gateValues),
                                       memory.floats(m_shared->factorValues), shared.gate, shared.gate, shared.factor});
        m_shared->gate.inputGrad(on, m_rows, parameters, shared.gate, inputGrad, Store::Add);
        m_shared->factor.inputGrad(on, m_rows, parameters, shared.factor, inputGrad, Store::Add);
    }
    m_norm.inputGrad(on, m_rows, parameters, memory.floats(m_normInput), inputGrad, stream, gradients);
}

void Experts::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<std::int32_t> begin = memory.integers(m_begin);
    const std::span<float> input = memory.floats(m_input), expertInput = memory.floats(m_expertInput),
                           fc2Grad = memory.floats(m_fc2Grad);
    const std::span<float> fc2Input = memory.floats(m_fc2Input);
    const Fc1Grads grads = fc1Grads(memory, m_fc1Grad);
    if (m_correction)
        on.run(kernels::CountCopies{begin, m_correction->in(gradients)});
    m_router.weightGrad(on, m_rows, input, memory.floats(m_routerGrad), gradients);
    on.run(kernels::ExpertsWeightGrad{fc1Shape(), begin, expertInput, grads.gate, fc1Weights(gradients, false),
                                      fc1Biases(gradients, false), 2 * m_ffn});
    on.run(kernels::ExpertsWeightGrad{fc1Shape(), begin, expertInput, grads.factor, fc1Weights(gradients, true),
                                      fc1Biases(gradients, true), 2 * m_ffn});
    on.run(kernels::ExpertsWeightGrad{fc2Shape(), begin, fc2Input, fc2Grad, m_fc2.in(gradients),
                                      m_fc2Bias ? m_fc2Bias->in(gradients) : std::span<float>(), m_hidden});
    if (!m_shared)
        return;
    const Fc1Grads shared = fc1Grads(memory, m_shared->fc1Grad);
    m_shared->gate.weightGrad(on, m_rows, input, shared.gate, gradients);
    m_shared->factor.weightGrad(on, m_rows, input, shared.factor, gradients);
    m_shared->fc2.weightGrad(on, m_rows, memory.floats(m_shared->fc2Input), memory.floats(m_shared->fc2Grad),
                             gradients);
}

} // namespace pipewright
