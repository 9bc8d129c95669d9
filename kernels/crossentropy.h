// SPDX-License-Identifier: GPL-3.0-or-later
// Softmax with cross entropy against one target class per row; a row whose target is negative has no part in the loss
// and a gradient of zero. The forward pass keeps the probabilities, from which the gradient is one subtraction.
#pragma once

#include <cstdint>
#include <span>

namespace pipewright::kernels {

/// Turns logits[rows][classes] into probabilities in place and sets loss[0] to scale · the sum over rows
/// of -log p(target). The loss is taken from the logits, so a probability that underflows costs nothing.
struct CrossEntropyForward {
    int rows, classes;
    std::span<float> logitsToProbabilities;
    std::span<const std::int32_t> targets;
    float scale;
    std::span<float> loss;
};

/// logitsGrad = scale · (probabilities - one-hot targets).
struct CrossEntropyInputGrad {
    int rows, classes;
    std::span<const float> probabilities;
    std::span<const std::int32_t> targets;
    float scale;
    std::span<float> logitsGrad;
};

} // namespace pipewright::kernels
