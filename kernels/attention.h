// SPDX-License-Identifier: GPL-3.0-or-later
// Causal multi-head attention that stores its probabilities. Queries, keys, values and outputs have one
// row per token, sequences one after another, and head h in columns [h · headSize, (h + 1) · headSize).
// It has no weights, so there are only a forward and an input-gradient pass.
// Cost: F 4 and I 8 · sequences · heads · length² · headSize floating-point operations.
#pragma once

#include <cstddef>
#include <span>

namespace pipewright::kernels {

struct AttentionShape {
    int sequences = 0;
    int length = 0; ///< tokens per sequence
    int heads = 0;
    int headSize = 0;

    int hidden() const { return heads * headSize; }
    std::size_t tokens() const { return std::size_t(sequences) * length; }
    std::size_t scores() const { return tokens() * heads * length; } ///< elements of all score matrices
};

/// probabilities[sequence][head][query][key] = softmax over key <= query of query · key / sqrt(headSize),
/// exactly 0 for later keys; output[tokens][hidden] = probabilities · value.
void attentionForward(AttentionShape shape, std::span<const float> query, std::span<const float> key,
                      std::span<const float> value, std::span<float> probabilities, std::span<float> output);

/// From outputGrad[tokens][hidden] to queryKeyValueGrad[tokens][3 · hidden], where each row holds the
/// gradients of query, key and value side by side: the layout that one linear layer's gradients need.
/// `scoresGrad` is scratch of shape.scores() elements, so that a backend may take all heads at once.
void attentionInputGrad(AttentionShape shape, std::span<const float> query, std::span<const float> key,
                        std::span<const float> value, std::span<const float> probabilities,
                        std::span<const float> outputGrad, std::span<float> queryKeyValueGrad,
                        std::span<float> scoresGrad);

} // namespace pipewright::kernels
