// SPDX-License-Identifier: GPL-3.0-or-later
// A linear layer and its two gradients, over the backend's matrix product. Matrices are row-major and
// dense; a weight has one row per output, so rows of a weight can be used as a smaller linear layer.
// The three passes are separate because schedules run the input gradient and the weight gradient at
// different times. Cost of each: 2 · rows · inputs · outputs floating-point operations.
#pragma once

#include <cstdint>
#include <span>

namespace pipewright::kernels {

/// Whether a result replaces what the destination holds or is added to it.
enum class Store { Replace, Add };

struct LinearShape {
    int rows = 0; ///< tokens
    int inputs = 0;
    int outputs = 0;
};

/// How a device with bf16 arithmetic may read a product's two factors, in the order of the call.
struct Bf16Factors {
    bool exact = false;                                    ///< bf16 can hold all of their values
    const std::uint16_t *left = nullptr, *right = nullptr; ///< copies in bf16; both or neither
    bool areStored() const { return left && right; }
};

/// output[rows][outputs] = input[rows][inputs] · weight[outputs][inputs]ᵀ + bias[outputs]. No bias when
/// the span is empty. If `activated` is not empty, it becomes GELU of the output in tanh form; only with
/// Store::Replace.
struct LinearForward {
    LinearShape shape;
    std::span<const float> input, weight, bias;
    std::span<float> output;
    Store store = Store::Replace;
    std::span<float> activated = {};
    Bf16Factors bf16 = {};
};

/// inputGrad[rows][inputs] = outputGrad[rows][outputs] · weight[outputs][inputs], or is added to what is there. If the
/// input was gelu(`activationInput`), the result is the gradient of activationInput; only with Store::Replace.
struct LinearInputGrad {
    LinearShape shape;
    std::span<const float> outputGrad, weight;
    std::span<float> inputGrad;
    Store store = Store::Replace;
    std::span<const float> activationInput = {};
    Bf16Factors bf16 = {};
};

/// weightGrad[outputs][inputs] += outputGradᵀ · input, biasGrad[outputs] += column sums of outputGrad.
/// No bias gradient when its span is empty.
struct LinearWeightGrad {
    LinearShape shape;
    std::span<const float> input, outputGrad;
    std::span<float> weightGrad, biasGrad;
    Bf16Factors bf16 = {};
};

/// False when the matrix library that was loaded is a build without locks, whose concurrent callers
/// overwrite each other's work space: an alternatives system or LD_LIBRARY_PATH may load another library than the one
/// that was linked.
bool concurrentProductsAreSafe();

} // namespace pipewright::kernels
