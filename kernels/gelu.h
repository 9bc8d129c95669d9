// SPDX-License-Identifier: GPL-3.0-or-later
// GELU in the tanh form of Hendrycks and Gimpel (arXiv 1606.08415):
// x/2 · (1 + tanh(sqrt(2/pi) · (x + 0.044715 x³))), computed as x · sigmoid of twice that argument, which needs only
// one exponential.
#pragma once

#include <span>

namespace pipewright::kernels {

/// output = gelu(input), element by element; they may be the same.
struct GeluForward {
    std::span<const float> input;
    std::span<float> output;
};

/// inputGrad = outputGrad · gelu'(input), element by element; outputGrad and inputGrad may be the same.
struct GeluInputGrad {
    std::span<const float> input, outputGrad;
    std::span<float> inputGrad;
};

} // namespace pipewright::kernels
