// SPDX-License-Identifier: GPL-3.0-or-later
// An MLP as a residual part of a layer (residual.h): linear, activation (gated: of one half of the outputs, times the
// other), linear, added to the stream (endlayers.h says what a stream is). In a classifier it is the whole layer.
#pragma once

#include "executor/training/linear.h"
#include "executor/training/residual.h"
#include "executor/training/stagelayout.h"

#include <span>

namespace pipewright {

kernels::ActivationKind kindOf(Activation activation);

class Mlp {
public:
    Mlp(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    void forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    /// Where a gated MLP's second half of outputs, or of their gradients, begins.
    std::size_t half() const { return std::size_t(m_rows) * std::size_t(m_fc2.inputs()); }

    int m_rows;
    bool m_gated;
    kernels::ActivationKind m_activation;
    Residual m_residual;
    Linear m_fc1, m_fc2;
    Slice m_activationInput, m_factor; // until I; a factor only where it is gated
    Slice m_fc2Input;                  // until W
    Slice m_fc1Grad, m_fc2Grad;        // from I
    Slice m_normGrad;                  // workspace of I
};

} // namespace pipewright
