// SPDX-License-Identifier: GPL-3.0-or-later
// Shared by both implementations of attention: which keys a query sees, where the earlier pieces of a sequence are, and
// the arguments of the kernels. attention.cu computes in fp32, tensorattention.cu in bf16 on tensor cores.
#pragma once

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/stored.cuh"
#include "kernels/linearbiases.h"

#include <cassert>
#include <cmath>

namespace pipewright::kernels::cuda {

/// Keys and values of the pieces before the current one.
struct Earlier {
    int count;
    std::size_t key, value;
    const float* saved[mostPieces - 1];

    /// The keys that an earlier piece saved, or `own` for the current piece.
    template<typename Element>
    __device__ In<Element> keys(int piece, In<Element> own) const
    {
        return piece < count ? In<Element>{reinterpret_cast<const Element*>(saved[piece]) + key} : own;
    }
    template<typename Element>
    __device__ In<Element> values(int piece, In<Element> own) const
    {
        return piece < count ? In<Element>{reinterpret_cast<const Element*>(saved[piece]) + value} : own;
    }
};

inline Earlier plain(int pieces, const EarlierPieces& earlier)
{
    assert(pieces <= mostPieces && int(earlier.saved.size()) < pieces);
    Earlier result{int(earlier.saved.size()), earlier.key, earlier.value, {}};
    for (int i = 0; i < result.count; ++i)
        result.saved[i] = earlier.saved[i];
    return result;
}

/// The problem of both kinds of attention: the shape of grouped attention, and the distances between the gradients of
/// consecutive tokens.
struct Problem {
    GroupedAttentionShape shape;
    int queryGradRow, keyGradRow, valueGradRow;
    Earlier earlier;
    bool inWords = false; ///< stored elements may be read two at a time

    __device__ int queryRow() const { return shape.heads * shape.querySize; }
    __device__ int keyRow() const { return shape.keyValueHeads * shape.querySize; }
    __device__ int valueRow() const { return shape.keyValueHeads * shape.valueSize; }
    __device__ int outputRow() const { return shape.heads * shape.valueSize; }

    /// Positions count in the whole sequence.
    __device__ int queryPosition(int query) const { return earlier.count * shape.length + query; }
    __device__ int keyPosition(int piece, int key) const { return piece * shape.length + key; }
    __device__ bool sees(int query, int key) const
    {
        return !shape.causal || (key <= query && (shape.window == 0 || query - key < shape.window));
    }
    /// Whether none of `queries` queries from position `query` sees any of `keys` keys from position `key`.
    __device__ bool seesNothing(int query, int queries, int key, int keys) const
    {
        return shape.causal
               && (key > query + queries - 1 || (shape.window > 0 && query - (key + keys - 1) >= shape.window));
    }
    __device__ float capped(float score) const
    {
        return shape.softCap > 0 ? shape.softCap * tanhf(score / shape.softCap) : score;
    }
    /// Of the linear biases of a head; 0: there are none.
    __device__ float slope(int head) const
    {
        return shape.biasedHeads > 0 ? linearBiasSlope(shape.biasedHeads, shape.firstHead + head) : 0.0f;
    }
    /// Of a score, for positions of query and key.
    __device__ static float bias(float slope, int query, int key)
    {
        return slope > 0 ? slope * float(key - query) : 0.0f;
    }
    /// The derivative of capped() where its value is `value`.
    __device__ float slopeOfCap(float value) const
    {
        return shape.softCap > 0 ? 1 - value / shape.softCap * (value / shape.softCap) : 1.0f;
    }
};

inline GroupedAttentionShape grouped(const AttentionShape& shape)
{
    return {.sequences = shape.sequences,
            .length = shape.length,
            .heads = shape.heads,
            .keyValueHeads = shape.heads,
            .querySize = shape.headSize,
            .valueSize = shape.headSize,
            .pieces = shape.pieces,
            .scale = float(1 / std::sqrt(double(shape.headSize)))};
}

inline Problem problem(const GroupedAttentionShape& shape, const EarlierPieces& earlier)
{
    return {shape, shape.heads * shape.querySize, shape.keyValueHeads * shape.querySize,
            shape.keyValueHeads * shape.valueSize, plain(shape.pieces, earlier)};
}

template<typename Element>
struct AttentionForwardPass {
    In<Element> query, key, value, sinks;
    float* logSums;
    Out<Element> output;
};

template<typename Element>
struct AttentionBackwardPass {
    In<Element> query, key, value, sinks;
    const float* logSums;
    In<Element> output, outputGrad;
    Out<Element> queryGrad, keyGrad, valueGrad;
    float *dots, *owed, *sinkGrad;
};

/// The values of one query and key.
struct Numbers {
    bool seen;
    float logSum, dot;
    float bias; ///< of the score
};

/// Replaces `score`, the product of query and key, by their probability, and `grad`, the product of outputGrad and
/// value, by the gradient of the product of query and key.
__device__ inline void scoreGradient(const Problem& of, const Numbers& is, float& score, float& grad)
{
    const float capped = of.capped(of.shape.scale * score);
    score = is.seen ? expf(capped + is.bias - is.logSum) : 0.0f;
    grad = is.seen ? of.shape.scale * score * (grad - is.dot) * of.slopeOfCap(capped) : 0.0f;
}

// In tensorattention.cu: the same in bf16, for a problem with at least one token. The backward pass needs `dots`
// filled.
template<typename Element>
void launchOnTensorCores(const Context& context, const Problem& of, const AttentionForwardPass<Element>& with);
template<typename Element>
void launchOnTensorCores(const Context& context, const Problem& of, const AttentionBackwardPass<Element>& with);

} // namespace pipewright::kernels::cuda
