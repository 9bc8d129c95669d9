// SPDX-License-Identifier: GPL-3.0-or-later
// A mixture of experts as a residual part of a layer: norm, a router that chooses some experts for every token, gated
// MLPs of those, their weighted sum, and perhaps experts that every token visits; added to the stream (endlayers.h says
// what a stream is). No token is dropped. The router learns through the weights; a correction of the choice
// (DeepSeek-V3) stays as it is, and there is no term of balance in the loss.
#pragma once

#include "executor/training/linear.h"
#include "executor/training/norm.h"
#include "executor/training/stagelayout.h"

#include <optional>
#include <span>

namespace pipewright {

kernels::Router routerOf(const ModelShape& shape);

class Experts {
public:
    Experts(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    void forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    /// The experts that every token visits: one MLP as wide as all of them.
    struct Shared {
        Linear gate, factor, fc2;
    };
    /// Two of a gated MLP's tensors, for the chosen experts and, behind them, the shared ones.
    struct Parts {
        std::span<float> chosen, shared;
    };
    Parts partsOf(std::span<float> values) const;
    /// Gradients of gates and factors: gates of the chosen, their factors, and likewise of the shared.
    struct Fc1Grads {
        std::span<float> gate, factor, sharedGate, sharedFactor;
    };
    Fc1Grads fc1Grads(const StageMemory& memory) const;
    kernels::ExpertsShape fc1Shape() const;
    kernels::ExpertsShape fc2Shape() const;
    /// The weights of gates or factors, from the first expert's on.
    template<class T>
    std::span<T> fc1Weights(std::span<T> flat, bool factors) const
    {
        return m_fc1.in(flat).subspan(factors ? std::size_t(m_ffn) * std::size_t(m_hidden) : 0);
    }

    int m_rows, m_hidden, m_ffn;
    kernels::Router m_routing;
    kernels::ActivationKind m_activation;
    Norm m_norm;
    Linear m_router;
    std::optional<Parameter> m_correction;
    Parameter m_fc1, m_fc2; ///< of all experts
    std::optional<Shared> m_shared;
    Slice m_normInput, m_probabilities, m_choice, m_row, m_weight, m_gate, m_factor, m_output; // until I
    Slice m_input, m_begin, m_expertInput, m_fc2Input;                                         // until W
    Slice m_routerGrad, m_fc1Grad, m_fc2Grad;                                                  // from I
    Slice m_normGrad, m_expertGrad;                                                            // workspace of I
};

} // namespace pipewright
