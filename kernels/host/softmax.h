// SPDX-License-Identifier: GPL-3.0-or-later
// The softmax of one row, shared by attention and cross entropy.
#pragma once

#include <cstddef>

namespace pipewright::kernels {

struct SoftmaxNormaliser {
    float largest = 0; ///< of the scaled scores
    float sum = 0;     ///< of e^(scaled score - largest); log-sum-exp is largest + log(sum)
};

/// row[i] = softmax of scale · row over the first `count` values (at least one), in place. scale > 0.
SoftmaxNormaliser softmaxRow(std::size_t count, float scale, float* row);

} // namespace pipewright::kernels
