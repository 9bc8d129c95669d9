// SPDX-License-Identifier: GPL-3.0-or-later
// Token and position embedding. Tokens are whole sequences of `length` one after another. There is no
// input gradient: tokens are not differentiable.
#pragma once

#include <cstdint>
#include <span>

namespace pipewright::kernels {

/// output[token][hidden] = table[tokens[token]][hidden] + positions[token % length][hidden]; without positions (an
/// empty span) only the first term. Every token must be a row of the table.
struct EmbeddingForward {
    int length, hidden;
    std::span<const std::int32_t> tokens;
    std::span<const float> table, positions;
    std::span<float> output;
};

/// tableGrad and, where there are positions, positionsGrad += the rows of outputGrad they were used for, in the order
/// of the tokens.
struct EmbeddingWeightGrad {
    int length, hidden;
    std::span<const std::int32_t> tokens;
    std::span<const float> outputGrad;
    std::span<float> tableGrad, positionsGrad;
};

} // namespace pipewright::kernels
