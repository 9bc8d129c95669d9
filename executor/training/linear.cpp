// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/linear.h"

namespace pipewright {

Linear::Linear(const ParameterLayout& parameters, int layer, const std::string& name)
{
    const Parameter& weight = parameters.at(layer, name + ".weight");
    m_inputs = weight.columns;
    m_outputs = weight.rows;
    m_weight = weight.offset;
    if (const Parameter* bias = parameters.findAt(layer, name + ".bias"))
        m_bias = bias->offset;
}

Linear Linear::part(int firstOutput, int outputs) const
{
    Linear part = *this;
    part.m_outputs = outputs;
    part.m_weight += std::size_t(firstOutput) * std::size_t(m_inputs);
    if (part.m_bias)
        *part.m_bias += std::size_t(firstOutput);
    return part;
}

void Linear::forward(const kernels::Operations& on, int rows, std::span<const float> parameters,
                     std::span<const float> input, std::span<float> output, kernels::Store store,
                     std::span<float> activated) const
{
    on.run(
        kernels::LinearForward{shape(rows), input, weightIn(parameters), biasIn(parameters), output, store, activated});
}

void Linear::inputGrad(const kernels::Operations& on, int rows, std::span<const float> parameters,
                       std::span<const float> outputGrad, std::span<float> inputGrad, kernels::Store store,
                       std::span<const float> activationInput) const
{
    on.run(kernels::LinearInputGrad{shape(rows), outputGrad, weightIn(parameters), inputGrad, store, activationInput});
}

void Linear::weightGrad(const kernels::Operations& on, int rows, std::span<const float> input,
                        std::span<const float> outputGrad, std::span<float> gradients) const
{
    on.run(kernels::LinearWeightGrad{shape(rows), input, outputGrad, weightIn(gradients), biasIn(gradients)});
}

} // namespace pipewright
