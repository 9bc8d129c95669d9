// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/norm.h"

#include <cassert>

namespace pipewright {

Norm::Norm(const ModelShape& shape, const ParameterLayout& parameters, int layer, const std::string& name)
    : m_gamma(parameters.at(layer, name + ".gamma")), m_epsilon(float(shape.normEpsilon))
{
    if (const Parameter* beta = parameters.findAt(layer, name + ".beta"))
        m_beta = *beta;
}

void Norm::forward(const kernels::Operations& on, int rows, std::span<const float> parameters,
                   std::span<const float> input, std::span<float> output, kernels::Store store) const
{
    assert(!m_beta || store == kernels::Store::Replace);
    if (m_beta)
        on.run(kernels::LayerNormForward{rows, m_gamma.columns, input, m_gamma.in(parameters), m_beta->in(parameters),
                                         output, m_epsilon});
    else
        on.run(kernels::RmsNormForward{rows, m_gamma.columns, m_epsilon, input, m_gamma.in(parameters), output, store});
}

void Norm::inputGrad(const kernels::Operations& on, int rows, std::span<const float> parameters,
                     std::span<const float> input, std::span<const float> outputGrad, std::span<float> stream,
                     std::span<float> gradients, kernels::Store store) const
{
    // The parameters' gradients come first: in place, the output's gradient is overwritten.
    const int columns = m_gamma.columns;
    if (m_beta) {
        on.run(kernels::LayerNormWeightGrad{rows, columns, input, outputGrad, m_gamma.in(gradients),
                                            m_beta->in(gradients), m_epsilon});
        on.run(kernels::LayerNormInputGrad{rows, columns, input, m_gamma.in(parameters), outputGrad, stream, m_epsilon,
                                           store});
        return;
    }
    on.run(kernels::RmsNormWeightGrad{rows, columns, m_epsilon, input, outputGrad, m_gamma.in(gradients)});
    on.run(
        kernels::RmsNormInputGrad{rows, columns, m_epsilon, input, m_gamma.in(parameters), outputGrad, stream, store});
}

void Norm::inputGradInPlace(const kernels::Operations& on, int rows, std::span<const float> parameters,
                            std::span<const float> input, std::span<float> grad, std::span<float> gradients) const
{
    inputGrad(on, rows, parameters, input, grad, grad, gradients, kernels::Store::Replace);
}

} // namespace pipewright
