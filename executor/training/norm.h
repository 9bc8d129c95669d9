// SPDX-License-Identifier: GPL-3.0-or-later
// A norm of a stage: a layer norm if it has a shift ("NAME.beta"), else an RMS norm. I computes its parameters'
// gradients, since it has the tensors that they need.
#pragma once

#include "executor/training/parameterlayout.h"

#include <optional>
#include <span>
#include <string>

namespace pipewright {

class Norm {
public:
    Norm(const ModelShape& shape, const ParameterLayout& parameters, int layer, const std::string& name);

    void forward(const kernels::Operations& on, int rows, std::span<const float> parameters,
                 std::span<const float> input, std::span<float> output,
                 kernels::Store store = kernels::Store::Replace) const; ///< a layer norm supports only Replace
    /// Adds the gradient of the norm's input to the stream, or replaces it, and adds those of its parameters to the
    /// gradients.
    void inputGrad(const kernels::Operations& on, int rows, std::span<const float> parameters,
                   std::span<const float> input, std::span<const float> outputGrad, std::span<float> stream,
                   std::span<float> gradients, kernels::Store store = kernels::Store::Add) const;
    /// The same in place: the output's gradient becomes the input's.
    void inputGradInPlace(const kernels::Operations& on, int rows, std::span<const float> parameters,
                          std::span<const float> input, std::span<float> grad, std::span<float> gradients) const;

private:
    Parameter m_gamma;
    std::optional<Parameter> m_beta;
    float m_epsilon;
};

} // namespace pipewright
