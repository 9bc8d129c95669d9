// SPDX-License-Identifier: GPL-3.0-or-later
// The function between the two products of an MLP, element by element: of one value, or in a gated MLP function(gate) ·
// factor (Shazeer, arXiv 2002.05202). Products compute GELU in its tanh form too (matmul.h).
#pragma once

#include <cstdint>
#include <span>

namespace pipewright::kernels {

enum class ActivationKind : std::int32_t {
    GeluTanh,    ///< x/2 · (1 + tanh(sqrt(2/pi) · (x + 0.044715 x³))), Hendrycks and Gimpel, arXiv 1606.08415
    Gelu,        ///< x/2 · (1 + erf(x / sqrt(2)))
    Silu,        ///< x / (1 + e^-x)
    Tanh,        ///< BERT's pooler
    ClampedSilu, ///< gated only, see GatedForward
};

/// output = f(input); they may be the same.
struct ActivationForward {
    ActivationKind kind;
    std::span<const float> input;
    std::span<float> output;
};

/// inputGrad = outputGrad · f'(input); the two gradients may be the same.
struct ActivationInputGrad {
    ActivationKind kind;
    std::span<const float> input, outputGrad;
    std::span<float> inputGrad;
};

/// output = f(gate) · factor. ClampedSilu, as in GPT-OSS: with g = min(gate, 7) and u the factor clamped to -7 … 7,
/// output = g / (1 + e^(-1.702 g)) · (1 + u).
struct GatedForward {
    ActivationKind kind;
    std::span<const float> gate, factor;
    std::span<float> output;
};

/// gateGrad = outputGrad · f'(gate) · factor and factorGrad = outputGrad · f(gate), or the derivatives of ClampedSilu;
/// gateGrad may be outputGrad.
struct GatedInputGrad {
    ActivationKind kind;
    std::span<const float> gate, factor, outputGrad;
    std::span<float> gateGrad, factorGrad;
};

} // namespace pipewright::kernels
