// SPDX-License-Identifier: GPL-3.0-or-later
// Causal multi-head attention that stores its probabilities. Queries, keys, values and outputs have one
// row per token, sequences one after another, and head h in columns [h · headSize, (h + 1) · headSize).
// It has no weights, so there are only a forward and an input-gradient pass.
//
// The sequences may be pieces of longer ones, each piece computed on its own: its queries then look at the keys
// of the pieces before it too, and its backward adds to their gradients, which therefore go from the last piece
// to the first. A whole sequence is one piece.
// Cost: F 4 and I 8 · sequences · heads · length · (keys looked at) · headSize floating-point operations.
#pragma once

#include <cstddef>
#include <span>

namespace pipewright::kernels {

struct AttentionShape {
    int sequences = 0;
    int length = 0; ///< tokens per sequence, or per piece of one
    int heads = 0;
    int headSize = 0;
    int pieces = 1; ///< that make a sequence

    int hidden() const { return heads * headSize; }
    int keys() const { return pieces * length; } ///< of a whole sequence: the length of a row of scores
    std::size_t tokens() const { return std::size_t(sequences) * length; }
    std::size_t scores() const { return tokens() * heads * keys(); } ///< elements of all score matrices
    /// Elements of the gradients of keys and values that go from piece to piece: of all pieces but the last.
    std::size_t sequenceGradient() const { return 2 * std::size_t(pieces - 1) * tokens() * hidden(); }
};

/// The pieces of the same sequences that come before, oldest first: the keys of piece i begin at
/// saved[i] + key, its values at saved[i] + value. There are as many as the number of the own piece.
struct EarlierPieces {
    std::span<const float* const> saved;
    std::size_t key = 0, value = 0;
};

/// probabilities[sequence][head][query][key] = softmax over key <= query of query · key / sqrt(headSize),
/// exactly 0 for later keys; output[tokens][hidden] = probabilities · value. `saved` is what the gradient needs of it:
/// the probabilities where the device keeps them (Operations::keepsProbabilities), else the logarithm of each row's
/// sum.
struct AttentionForward {
    AttentionShape shape;
    std::span<const float> query, key, value;
    std::span<float> saved, output;
    EarlierPieces earlier = {};
    bool bf16 = false; ///< bf16 can hold the queries, keys and values: products may be made of such
};

/// From outputGrad[tokens][hidden] to queryKeyValueGrad[tokens][3 · hidden], where each row holds the
/// gradients of query, key and value side by side: the layout that one linear layer's gradients need.
/// `scratch` has as many elements as `saved`, so that a backend may take all heads at once.
/// `sequenceGradient` [piece][key, value][tokens][hidden] of shape.sequenceGradient() elements collects what
/// later pieces owe to earlier ones: the last piece fills it, and every other takes out its own share and adds.
struct AttentionInputGrad {
    AttentionShape shape;
    std::span<const float> query, key, value, saved, output, outputGrad;
    std::span<float> queryKeyValueGrad, scratch;
    EarlierPieces earlier = {};
    std::span<float> sequenceGradient = {};
    bool bf16 = false; ///< and the output's gradients
};

} // namespace pipewright::kernels
