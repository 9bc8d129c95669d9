// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/mlp.h"

namespace pipewright {

kernels::ActivationKind kindOf(Activation activation)
{
    switch (activation) {
    case Activation::GeluTanh: return kernels::ActivationKind::GeluTanh;
    case Activation::Gelu: return kernels::ActivationKind::Gelu;
    case Activation::Silu: return kernels::ActivationKind::Silu;
    case Activation::ClampedSilu: return kernels::ActivationKind::ClampedSilu;
    }
    return kernels::ActivationKind::GeluTanh;
}

Mlp::Mlp(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters)
    : m_rows(int(shape.tokens())), m_gated(shape.gatedMlp), m_activation(kindOf(shape.activation)),
      m_residual(shape, layer, layout, parameters, Residual::mlp), m_fc1(parameters, layer, "fc1"),
      m_fc2(parameters, layer, "fc2"), m_activationInput(layout.slice(layer, "mlp.activationInput")),
      m_fc2Input(layout.slice(layer, "fc2.input")), m_fc1Grad(layout.slice(layer, "fc1.outputGrad")),
      m_fc2Grad(layout.slice(layer, "fc2.outputGrad")), m_normGrad(layout.slice(layer, "d.ln"))
{
    if (m_gated)
        m_factor = layout.slice(layer, "mlp.gateInput");
}

void Mlp::forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const
{
    const kernels::Operations& on = *memory.operations;
    m_residual.enter(parameters, memory, stream);
    const std::span<float> input = m_residual.input(memory), activationInput = memory.floats(m_activationInput),
                           output = memory.floats(m_fc2Input);
    if (m_gated) {
        const int width = m_fc2.inputs();
        m_fc1.part(0, width).forward(on, m_rows, parameters, input, activationInput);
        m_fc1.part(width, width).forward(on, m_rows, parameters, input, memory.floats(m_factor));
        on.run(kernels::GatedForward{m_activation, activationInput, memory.floats(m_factor), output});
    } else {
        // The tanh form of GELU can be fused with the product.
        const bool fused = m_activation == kernels::ActivationKind::GeluTanh;
        m_fc1.forward(on, m_rows, parameters, input, activationInput, kernels::Store::Replace,
                      fused ? output : std::span<float>());
        if (!fused)
            on.run(kernels::ActivationForward{m_activation, activationInput, output});
    }
    m_fc2.forward(on, m_rows, parameters, output, m_residual.sum(memory, stream), m_residual.store());
    m_residual.leave(parameters, memory, stream);
}

void Mlp::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                    std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<float> normGrad = memory.floats(m_normGrad).first(stream.size());
    const std::span<float> fc1Grad = memory.floats(m_fc1Grad), grad = fc1Grad.first(half());
    const std::span<float> outputGrad = memory.floats(m_fc2Grad);
    m_residual.enterGrad(parameters, memory, stream, outputGrad, gradients);
    const bool fused = !m_gated && m_activation == kernels::ActivationKind::GeluTanh;
    m_fc2.inputGrad(on, m_rows, parameters, outputGrad, grad, kernels::Store::Replace,
                    fused ? std::span<const float>(memory.floats(m_activationInput)) : std::span<const float>());
    if (m_gated) {
        const std::span<float> factorGrad = fc1Grad.subspan(half());
        const int width = m_fc2.inputs();
        on.run(kernels::GatedInputGrad{m_activation, memory.floats(m_activationInput), memory.floats(m_factor), grad,
                                       grad, factorGrad});
        m_fc1.part(0, width).inputGrad(on, m_rows, parameters, grad, normGrad);
        m_fc1.part(width, width).inputGrad(on, m_rows, parameters, factorGrad, normGrad, kernels::Store::Add);
    } else {
        if (!fused)
            on.run(kernels::ActivationInputGrad{m_activation, memory.floats(m_activationInput), grad, grad});
        m_fc1.inputGrad(on, m_rows, parameters, grad, normGrad);
    }
    m_residual.leaveGrad(parameters, memory, normGrad, stream, gradients);
}

void Mlp::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<float> input = m_residual.input(memory), fc1Grad = memory.floats(m_fc1Grad);
    if (m_gated) {
        const int width = m_fc2.inputs();
        m_fc1.part(0, width).weightGrad(on, m_rows, input, fc1Grad.first(half()), gradients);
        m_fc1.part(width, width).weightGrad(on, m_rows, input, fc1Grad.subspan(half()), gradients);
    } else {
        m_fc1.weightGrad(on, m_rows, input, fc1Grad, gradients);
    }
    m_fc2.weightGrad(on, m_rows, memory.floats(m_fc2Input), memory.floats(m_fc2Grad), gradients);
}

} // namespace pipewright
