// SPDX-License-Identifier: GPL-3.0-or-later
// Embedding and head with one matrix in one stage: both have its gradient, the sum of what each computed. Where two
// stages hold the two, a Reduce task of the program computes the same.
#pragma once

#include "executor/stage/parameterlayout.h"
#include "kernels/operations.h"

namespace pipewright {

/// Both gradients become embedding + head. Does nothing in a stage that does not hold both.
void sumTiedGradients(const kernels::Operations& operations, const ParameterLayout& layout, std::span<float> gradients);

} // namespace pipewright
