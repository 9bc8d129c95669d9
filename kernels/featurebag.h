// SPDX-License-Identifier: GPL-3.0-or-later
// A bag of features: the first linear layer of a classifier whose input is a list of feature numbers, each of them
// one row of the weight matrix. There is no input gradient: feature numbers are not differentiable.
#pragma once

#include <cstdint>
#include <span>

namespace pipewright::kernels {

/// output[row][hidden] = the sum of table[feature][hidden] over the row's `length` features / sqrt(length), added in
/// their order. Every feature must be a row of the table.
struct FeatureBagForward {
    int length, hidden;
    std::span<const std::int32_t> features;
    std::span<const float> table;
    std::span<float> output;
};

/// tableGrad += outputGrad / sqrt(length) at the features of each row, in the order of the rows.
struct FeatureBagWeightGrad {
    int length, hidden;
    std::span<const std::int32_t> features;
    std::span<const float> outputGrad;
    std::span<float> tableGrad;
};

} // namespace pipewright::kernels
