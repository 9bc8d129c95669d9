// SPDX-License-Identifier: GPL-3.0-or-later
// A mixture of experts as a residual part of a layer: norm, a router that chooses some experts for every token, gated
// MLPs of these experts, their weighted sum, and optionally shared experts that every token visits; added to the stream
// (endlayers.h says what a stream is). No token is dropped. The router learns through the weights and, where the model
// has one, a load-balancing term: the mean over layers and microbatches of coefficient · experts · the sum over experts
// of copies / tokens · mean probability. Its value is not in the losses that a run shows. A correction of the choice
// (DeepSeek-V3) has no gradient: in its place the number of copies that visited each expert is counted, and the
// optimizer step moves the correction by it (optimizer.h).
#pragma once

#include "executor/training/linear.h"
#include "executor/training/norm.h"
#include "executor/training/stagelayout.h"

#include <optional>
#include <span>

namespace pipewright {

kernels::Router routerOf(const ModelShape& shape);

/// Layers with a mixture of experts.
int expertLayersOf(const ModelShape& shape);

class Experts {
public:
    /// `microbatches`: of a step.
    Experts(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
            int microbatches);

    void forward(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const;
    void inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> gradients) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    /// The experts that every token visits: one MLP as wide as all of them.
    struct Shared {
        Linear gate, factor, fc2;
        Slice gateValues, factorValues; // until I
        Slice fc2Input;                 // until W
        Slice fc1Grad, fc2Grad;         // from I
    };
    /// Gradients of gates and of factors.
    struct Fc1Grads {
        std::span<float> gate, factor;
    };
    static Fc1Grads fc1Grads(const StageMemory& memory, const Slice& slice);
    kernels::ExpertsShape fc1Shape() const;
    kernels::ExpertsShape fc2Shape() const;
    /// The weights of gates or factors, starting with the first expert's.
    template<class T>
    std::span<T> fc1Weights(std::span<T> flat, bool factors) const
    {
        return m_fc1.in(flat).subspan(factors ? std::size_t(m_ffn) * std::size_t(m_hidden) : 0);
    }

    template<class T>
    std::span<T> fc1Biases(std::span<T> flat, bool factors) const
    {
        return m_fc1Bias ? m_fc1Bias->in(flat).subspan(factors ? std::size_t(m_ffn) : 0) : std::span<T>();
    }

    int m_rows, m_hidden, m_ffn;
    float m_balance; ///< slope of the load-balancing term for a probability, per copy
    kernels::Router m_routing;
    kernels::ActivationKind m_activation;
    Norm m_norm;
    Linear m_router;
    std::optional<Parameter> m_correction;
    Parameter m_fc1, m_fc2; ///< of all experts
    std::optional<Parameter> m_fc1Bias, m_fc2Bias;
    std::optional<Shared> m_shared;
    Slice m_normInput, m_probabilities, m_choice, m_row, m_weight, m_gate, m_factor, m_output; // until I
    Slice m_input, m_begin, m_expertInput, m_fc2Input;                                         // until W
    Slice m_routerGrad, m_fc1Grad, m_fc2Grad;                                                  // from I
    Slice m_normGrad, m_expertGrad;                                                            // workspace of I
};

} // namespace pipewright
