// SPDX-License-Identifier: GPL-3.0-or-later
// Causal multi-head attention that stores its probabilities. Queries, keys, values and outputs have one
// row per token, sequences one after another, and head h in columns [h · headSize, (h + 1) · headSize).
// It has no weights, so there are only a forward and an input-gradient pass.
//
// The sequences may be pieces of longer ones, each piece computed on its own: its queries then also attend to the keys
// of earlier pieces, and its backward adds to their gradients, so backwards run from the last piece to the first. A
// whole sequence is one piece.
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
    int pieces = 1; ///< pieces per sequence

    int hidden() const { return heads * headSize; }
    int keys() const { return pieces * length; } ///< of a whole sequence: the length of a row of scores
    std::size_t tokens() const { return std::size_t(sequences) * length; }
    std::size_t scores() const { return tokens() * heads * keys(); } ///< elements of all score matrices
    /// Elements of the key and value gradients that are passed from piece to piece: those of all pieces but the last.
    std::size_t sequenceGradient() const { return 2 * std::size_t(pieces - 1) * tokens() * hidden(); }
};

/// The earlier pieces of the same sequences, oldest first: the keys of piece i begin at saved[i] + key, its values at
/// saved[i] + value. Their number is the index of the current piece.
struct EarlierPieces {
    std::span<const float* const> saved;
    std::size_t key = 0, value = 0;
};

/// probabilities[sequence][head][query][key] = softmax over key <= query of query · key / sqrt(headSize),
/// exactly 0 for later keys; output[tokens][hidden] = probabilities · value. `saved` is kept for the gradient: the
/// probabilities where the device keeps them (Operations::keepsProbabilities), else the logarithm of each row's sum.
struct AttentionForward {
    AttentionShape shape;
    std::span<const float> query, key, value;
    std::span<float> saved, output;
    EarlierPieces earlier = {};
    bool bf16 = false; ///< bf16 holds the queries, keys and values exactly, so products may read them as bf16
};

/// From outputGrad[tokens][hidden] to queryKeyValueGrad[tokens][3 · hidden], where each row holds the
/// gradients of query, key and value side by side: the layout that one linear layer's gradients need.
/// `scratch` has as many elements as `saved`, so that a backend may take all heads at once.
/// `sequenceGradient` [piece][key, value][tokens][hidden] of shape.sequenceGradient() elements collects the gradients
/// from later to earlier pieces: the last piece fills it, and every other piece takes its own part from it and adds to
/// the rest.
struct AttentionInputGrad {
    AttentionShape shape;
    std::span<const float> query, key, value, saved, output, outputGrad;
    std::span<float> queryKeyValueGrad, scratch;
    EarlierPieces earlier = {};
    std::span<float> sequenceGradient = {};
    bool bf16 = false; ///< bf16 holds these and the output's gradients exactly
};

} // namespace pipewright::kernels
