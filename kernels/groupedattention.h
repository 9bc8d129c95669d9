// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of today's models: several query heads share a key and value head (arXiv 2305.13245), values may have
// another size than queries, and queries may attend to a window only or, without a mask, to the whole sequence. Scores
// are never stored: the logarithm of the sum of exponentials is kept per query and head, and the backward recomputes
// the scores with it (Dao et al., arXiv 2205.14135). Rows are tokens, sequences one after another; head h is in columns
// [h · size, (h + 1) · size).
//
// Sequences may be pieces of longer ones, as in attention.h.
// Cost: F 2 and I 5 products of queries x attended keys x size per head, in tiles.
#pragma once

#include "kernels/attention.h"

#include <cstddef>
#include <span>

namespace pipewright::kernels {

struct GroupedAttentionShape {
    int sequences = 0;
    int length = 0; ///< tokens per sequence, or per piece of one
    int heads = 0, keyValueHeads = 0;
    int querySize = 0, valueSize = 0; ///< of a head
    int pieces = 1;                   ///< pieces per sequence
    int window = 0;                   ///< number of keys that a query attends to, ending with its own; 0: no limit
    bool causal = true;               ///< false: every query attends to every key
    float scale = 1;                  ///< factor on the scores, usually 1 / sqrt(querySize)
    float softCap = 0;                ///< scaled scores s become softCap · tanh(s / softCap); 0: no cap
    int biasedHeads = 0;              ///< with linear biases (linearbiases.h): the model's heads, of which these …
    int firstHead = 0;                ///< … begin with this one; 0 heads: without. They need `causal`

    std::size_t tokens() const { return std::size_t(sequences) * length; }
    std::size_t queries() const { return tokens() * heads * querySize; }
    std::size_t keys() const { return tokens() * keyValueHeads * querySize; }
    std::size_t values() const { return tokens() * keyValueHeads * valueSize; }
    std::size_t outputs() const { return tokens() * heads * valueSize; }
    std::size_t numbers() const { return tokens() * heads; } ///< elements of logSums, and of the scratch `dots`
    /// Elements of the key and value gradients that are passed from piece to piece: those of all pieces but the last.
    std::size_t sequenceGradient() const { return std::size_t(pieces - 1) * (keys() + values()); }
};

/// logSums[sequence][head][query]. With sinks, one score per head that belongs to no key takes part in the softmax and
/// in the sum whose logarithm is kept (GPT-OSS). earlier.key and earlier.value are the offsets of a piece's keys and
/// values.
struct GroupedAttentionForward {
    GroupedAttentionShape shape;
    std::span<const float> query, key, value;
    std::span<float> logSums, output;
    EarlierPieces earlier = {};
    std::span<const float> sinks = {};
    bool bf16 = false; ///< as in attention.h
};

/// Replaces the three gradients. `dots` has shape.numbers() elements of scratch. `sequenceGradient` [piece][keys,
/// values] collects the gradients from later to earlier pieces: the last piece fills it, every other takes its own part
/// and adds to the rest. sinkGrad += the gradients of sinks.
struct GroupedAttentionInputGrad {
    GroupedAttentionShape shape;
    std::span<const float> query, key, value, logSums, output, outputGrad;
    std::span<float> queryGrad, keyGrad, valueGrad, dots;
    EarlierPieces earlier = {};
    std::span<float> sequenceGradient = {};
    std::span<const float> sinks = {};
    std::span<float> sinkGrad = {};
    bool bf16 = false;
};

} // namespace pipewright::kernels
