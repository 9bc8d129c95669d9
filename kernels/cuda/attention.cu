// SPDX-License-Identifier: GPL-3.0-or-later
// A warp per query and head, lanes over the head's elements; keys pass by with a running maximum and sum, so the
// matrix of scores is never stored. Exact and in a fixed order; far from the speed of tensor cores. Pieces of a
// sequence pass one after another, oldest first; where they lie travels with the launch, so that a captured one keeps
// it.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"

#include <cassert>

namespace pipewright::kernels::cuda {

namespace {

constexpr int most = widestHead / 32; // elements per lane
constexpr int warps = int(blockSize / 32);

/// The pieces before the own one.
struct Earlier {
    int count;
    std::size_t key, value;
    const float* saved[mostPieces - 1];

    __device__ const float* keys(int piece, const float* own) const { return piece < count ? saved[piece] + key : own; }
    __device__ const float* values(int piece, const float* own) const
    {
        return piece < count ? saved[piece] + value : own;
    }
};

Earlier plain(const AttentionShape& shape, const EarlierPieces& earlier)
{
    assert(shape.pieces <= mostPieces && int(earlier.saved.size()) < shape.pieces);
    Earlier result{int(earlier.saved.size()), earlier.key, earlier.value, {}};
    for (int i = 0; i < result.count; ++i)
        result.saved[i] = earlier.saved[i];
    return result;
}

struct Place {
    bool inside;
    int lane, head, position;
    std::size_t token, first; // of the sequence, as tokens
    float scale;
};

__device__ Place placeOf(const AttentionShape& shape)
{
    const std::size_t index = std::size_t(blockIdx.x) * warps + threadIdx.x / 32;
    Place place{};
    place.inside = index < std::size_t(shape.sequences) * shape.length * shape.heads;
    place.lane = int(threadIdx.x % 32);
    place.head = int(index % shape.heads);
    place.token = index / shape.heads;
    place.position = int(place.token % shape.length);
    place.first = place.token - place.position;
    place.scale = rsqrtf(float(shape.headSize));
    return place;
}

struct Row {
    float element[most];
};

__device__ Row load(const float* matrix, std::size_t row, int stride, int column, int size, int lane)
{
    Row result;
    for (int i = 0; i < most; ++i)
        result.element[i] = lane + 32 * i < size ? matrix[row * stride + column + lane + 32 * i] : 0.0f;
    return result;
}

__device__ void store(const Row& values, float* matrix, std::size_t row, int stride, int column, int size, int lane)
{
    for (int i = 0; i < most; ++i)
        if (lane + 32 * i < size)
            matrix[row * stride + column + lane + 32 * i] = values.element[i];
}

__device__ float dot(const Row& a, const Row& b)
{
    float sum = 0;
    for (int i = 0; i < most; ++i)
        sum += a.element[i] * b.element[i];
    return warpSum(sum);
}

__device__ void addScaled(Row& to, float factor, const Row& from)
{
    for (int i = 0; i < most; ++i)
        to.element[i] += factor * from.element[i];
}

__global__ void forward(AttentionShape shape, Earlier earlier, const float* query, const float* key, const float* value,
                        float* logSum, float* output)
{
    const Place at = placeOf(shape);
    if (!at.inside)
        return;
    const int hidden = shape.heads * shape.headSize, column = at.head * shape.headSize, size = shape.headSize;
    const Row q = load(query, at.token, hidden, column, size, at.lane);
    Row sum{};
    float largest = -INFINITY, weight = 0;
    for (int piece = 0; piece <= earlier.count; ++piece) {
        const float *keys = earlier.keys(piece, key), *values = earlier.values(piece, value);
        const int last = piece < earlier.count ? shape.length - 1 : at.position;
        for (int k = 0; k <= last; ++k) {
            const float score = at.scale * dot(q, load(keys, at.first + k, hidden, column, size, at.lane));
            const float now = fmaxf(largest, score), shrink = expf(largest - now), share = expf(score - now);
            for (int i = 0; i < most; ++i)
                sum.element[i] *= shrink;
            addScaled(sum, share, load(values, at.first + k, hidden, column, size, at.lane));
            weight = weight * shrink + share;
            largest = now;
        }
    }
    for (int i = 0; i < most; ++i)
        sum.element[i] /= weight;
    store(sum, output, at.token, hidden, column, size, at.lane);
    if (at.lane == 0)
        logSum[at.token * shape.heads + at.head] = largest + logf(weight);
}

/// The gradient of the query; on the way the sum over keys of p · dp, which is outputGrad · output.
__global__ void queryGradient(AttentionShape shape, Earlier earlier, const float* query, const float* key,
                              const float* value, const float* logSum, const float* output, const float* outputGrad,
                              float* grad, float* dots)
{
    const Place at = placeOf(shape);
    if (!at.inside)
        return;
    const int hidden = shape.heads * shape.headSize, column = at.head * shape.headSize, size = shape.headSize;
    const Row q = load(query, at.token, hidden, column, size, at.lane);
    const Row dy = load(outputGrad, at.token, hidden, column, size, at.lane);
    const float shift = logSum[at.token * shape.heads + at.head];
    const float mean = dot(dy, load(output, at.token, hidden, column, size, at.lane));
    Row dq{};
    for (int piece = 0; piece <= earlier.count; ++piece) {
        const float *keys = earlier.keys(piece, key), *values = earlier.values(piece, value);
        const int last = piece < earlier.count ? shape.length - 1 : at.position;
        for (int k = 0; k <= last; ++k) {
            const Row each = load(keys, at.first + k, hidden, column, size, at.lane);
            const float p = expf(at.scale * dot(q, each) - shift);
            const float dp = dot(dy, load(values, at.first + k, hidden, column, size, at.lane));
            addScaled(dq, at.scale * p * (dp - mean), each);
        }
    }
    store(dq, grad, at.token, 3 * hidden, column, size, at.lane);
    if (at.lane == 0)
        dots[at.token * shape.heads + at.head] = mean;
}

/// The gradients of one key and value: all later queries of this piece, in order. Blocks [y] see to piece y's keys: the
/// last piece begins what earlier ones are owed, the others add to it, and each takes what later ones owe to it.
__global__ void keyValueGradient(AttentionShape shape, Earlier earlier, const float* query, const float* key,
                                 const float* value, const float* logSum, const float* outputGrad, const float* dots,
                                 float* grad, float* owed)
{
    const Place at = placeOf(shape);
    if (!at.inside)
        return;
    const int hidden = shape.heads * shape.headSize, column = at.head * shape.headSize, size = shape.headSize;
    const int piece = int(blockIdx.y);
    const bool isOwn = piece == earlier.count, isLast = earlier.count == shape.pieces - 1;
    const Row k = load(earlier.keys(piece, key), at.token, hidden, column, size, at.lane);
    const Row v = load(earlier.values(piece, value), at.token, hidden, column, size, at.lane);
    Row dk{}, dv{};
    for (int position = isOwn ? at.position : 0; position < shape.length; ++position) {
        const std::size_t token = at.first + position;
        const Row q = load(query, token, hidden, column, size, at.lane),
                  dy = load(outputGrad, token, hidden, column, size, at.lane);
        const float p = expf(at.scale * dot(q, k) - logSum[token * shape.heads + at.head]);
        addScaled(dv, p, dy);
        addScaled(dk, at.scale * p * (dot(dy, v) - dots[token * shape.heads + at.head]), q);
    }
    const std::size_t elements = std::size_t(shape.sequences) * shape.length * hidden;
    const std::size_t keyOwed = 2 * piece * elements, valueOwed = keyOwed + elements; // whole sequences have no `owed`
    if (!isLast) {
        addScaled(dk, 1, load(owed + keyOwed, at.token, hidden, column, size, at.lane));
        addScaled(dv, 1, load(owed + valueOwed, at.token, hidden, column, size, at.lane));
    }
    if (isOwn) {
        store(dk, grad, at.token, 3 * hidden, hidden + column, size, at.lane);
        store(dv, grad, at.token, 3 * hidden, 2 * hidden + column, size, at.lane);
    } else {
        store(dk, owed + keyOwed, at.token, hidden, column, size, at.lane);
        store(dv, owed + valueOwed, at.token, hidden, column, size, at.lane);
    }
}

unsigned blocks(const AttentionShape& shape)
{
    return unsigned((shape.tokens() * shape.heads + warps - 1) / warps);
}

} // namespace

void run(const Context& context, const AttentionForward& call)
{
    const auto [shape, query, key, value, logSum, output, earlier] = call;
    assert(shape.headSize <= widestHead);
    if (shape.tokens() > 0)
        forward<<<blocks(shape), blockSize, 0, context.stream>>>(shape, plain(shape, earlier), query.data(), key.data(),
                                                                 value.data(), logSum.data(), output.data());
}

void run(const Context& context, const AttentionInputGrad& call)
{
    const auto [shape, query, key, value, logSum, output, outputGrad, queryKeyValueGrad, dots, earlier,
                sequenceGradient] = call;
    assert(shape.headSize <= widestHead && sequenceGradient.size() == shape.sequenceGradient());
    if (shape.tokens() == 0)
        return;
    const Earlier before = plain(shape, earlier);
    queryGradient<<<blocks(shape), blockSize, 0, context.stream>>>(
        shape, before, query.data(), key.data(), value.data(), logSum.data(), output.data(), outputGrad.data(),
        queryKeyValueGrad.data(), dots.data());
    keyValueGradient<<<dim3(blocks(shape), unsigned(before.count + 1)), blockSize, 0, context.stream>>>(
        shape, before, query.data(), key.data(), value.data(), logSum.data(), outputGrad.data(), dots.data(),
        queryKeyValueGrad.data(), sequenceGradient.data());
}

} // namespace pipewright::kernels::cuda
