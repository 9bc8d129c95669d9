// SPDX-License-Identifier: GPL-3.0-or-later
// Layer normalisation over the columns of a row-major matrix: y = gamma · (x - mean) / sqrt(var + epsilon)
// + beta (Ba et al., arXiv 1607.06450). Mean and variance are not saved; both gradients recompute them
// from the saved input, which costs two passes over a row that is in cache anyway.
#pragma once

#include "kernels/matmul.h"

#include <span>

namespace pipewright::kernels {

inline constexpr float layerNormEpsilon = 1e-5f; ///< default; a model may state another

/// All matrices are rows x columns; gamma and beta have `columns` values.
struct LayerNormForward {
    int rows, columns;
    std::span<const float> input, gamma, beta;
    std::span<float> output;
    float epsilon = layerNormEpsilon;
};

/// inputGrad += the gradient through the normalisation. It is added, because the input also feeds the
/// residual connection, whose gradient is there already. To replace, inputGrad may be outputGrad.
struct LayerNormInputGrad {
    int rows, columns;
    std::span<const float> input, gamma, outputGrad;
    std::span<float> inputGrad;
    float epsilon = layerNormEpsilon;
    Store store = Store::Add;
};

/// gammaGrad += sum over rows of outputGrad · normalised input; betaGrad += sum over rows of outputGrad.
struct LayerNormWeightGrad {
    int rows, columns;
    std::span<const float> input, outputGrad;
    std::span<float> gammaGrad, betaGrad;
    float epsilon = layerNormEpsilon;
};

} // namespace pipewright::kernels
