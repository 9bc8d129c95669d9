// SPDX-License-Identifier: GPL-3.0-or-later
// Normalisation by the root of the mean square over the columns of a row-major matrix: y = gamma · x / sqrt(mean(x²) +
// epsilon) (Zhang and Sennrich, arXiv 1910.07467). Nothing is saved but the input, as for the layer norm.
#pragma once

#include "kernels/matmul.h"

#include <span>

namespace pipewright::kernels {

/// All matrices are rows x columns; gamma has `columns` values. The output may be added to what is there.
struct RmsNormForward {
    int rows, columns;
    float epsilon;
    std::span<const float> input, gamma;
    std::span<float> output;
    Store store = Store::Replace;
};

/// The gradient through the normalisation; it is added where the input also feeds a residual connection. To replace,
/// inputGrad may be outputGrad.
struct RmsNormInputGrad {
    int rows, columns;
    float epsilon;
    std::span<const float> input, gamma, outputGrad;
    std::span<float> inputGrad;
    Store store;
};

/// gammaGrad += sum over rows of outputGrad · normalised input.
struct RmsNormWeightGrad {
    int rows, columns;
    float epsilon;
    std::span<const float> input, outputGrad;
    std::span<float> gammaGrad;
};

} // namespace pipewright::kernels
