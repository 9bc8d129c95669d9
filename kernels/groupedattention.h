// SPDX-License-Identifier: GPL-3.0-or-later
// Attention as today's models have it: several query heads share a key and value head (arXiv 2305.13245), values may be
// of another size than queries, queries may look at a window only or, without a mask, at the whole sequence. Scores are
// never stored: of each query and head the logarithm of the sum of exponentials is kept, from which the backward makes
// them again (Dao et al., arXiv 2205.14135). Rows are tokens, sequences one after another; head h is in columns
// [h · size, (h + 1) · size).
//
// Sequences may be pieces of longer ones, as in attention.h.
// Cost: F 2 and I 5 products of queries x keys looked at x size per head, in tiles.
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
    int pieces = 1;                   ///< that make a sequence
    int window = 0;                   ///< keys that a query looks at, the last its own token's; 0: no limit
    bool causal = true;               ///< false: every query looks at every key
    float scale = 1;                  ///< of the scores, usually 1 / sqrt(querySize)
    float softCap = 0;                ///< scaled scores s become softCap · tanh(s / softCap); 0: they stay

    std::size_t tokens() const { return std::size_t(sequences) * length; }
    std::size_t queries() const { return tokens() * heads * querySize; }
    std::size_t keys() const { return tokens() * keyValueHeads * querySize; }
    std::size_t values() const { return tokens() * keyValueHeads * valueSize; }
    std::size_t outputs() const { return tokens() * heads * valueSize; }
    std::size_t numbers() const { return tokens() * heads; } ///< kept; and scratch
    /// The gradients of keys and values that go from piece to piece: of all pieces but the last.
    std::size_t sequenceGradient() const { return std::size_t(pieces - 1) * (keys() + values()); }
};

/// logSums[sequence][head][query]. Where there are sinks, a score per head that belongs to no key takes its share of
/// the softmax, and is in the sum whose logarithm is kept (GPT-OSS). earlier.key and earlier.value are where a piece's
/// keys and values begin.
struct GroupedAttentionForward {
    GroupedAttentionShape shape;
    std::span<const float> query, key, value;
    std::span<float> logSums, output;
    EarlierPieces earlier = {};
    std::span<const float> sinks = {};
    bool bf16 = false; ///< as in attention.h
};

/// Replaces the three gradients. `dots` has shape.numbers() elements of scratch. `sequenceGradient` [piece][keys,
/// values] collects what later pieces owe to earlier ones: the last piece fills it, every other takes its own and adds.
/// sinkGrad += the gradients of sinks.
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
