// SPDX-License-Identifier: GPL-3.0-or-later
// A warp per query and head, lanes over the head's elements; keys pass by with a running maximum and sum, so the
// matrix of scores is never stored. Exact and in a fixed order; far from the speed of tensor cores.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"

#include <cassert>

namespace pipewright::kernels::cuda {

namespace {

constexpr int most = 4; // elements per lane: heads of up to 128
constexpr int warps = int(blockSize / 32);

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

__global__ void forward(AttentionShape shape, const float* query, const float* key, const float* value, float* logSum,
                        float* output)
{
    const Place at = placeOf(shape);
    if (!at.inside)
        return;
    const int hidden = shape.heads * shape.headSize, column = at.head * shape.headSize, size = shape.headSize;
    const Row q = load(query, at.token, hidden, column, size, at.lane);
    Row sum{};
    float largest = -INFINITY, weight = 0;
    for (int k = 0; k <= at.position; ++k) {
        const float score = at.scale * dot(q, load(key, at.first + k, hidden, column, size, at.lane));
        const float now = fmaxf(largest, score), shrink = expf(largest - now), share = expf(score - now);
        for (int i = 0; i < most; ++i)
            sum.element[i] *= shrink;
        addScaled(sum, share, load(value, at.first + k, hidden, column, size, at.lane));
        weight = weight * shrink + share;
        largest = now;
    }
    for (int i = 0; i < most; ++i)
        sum.element[i] /= weight;
    store(sum, output, at.token, hidden, column, size, at.lane);
    if (at.lane == 0)
        logSum[at.token * shape.heads + at.head] = largest + logf(weight);
}

/// The gradient of the query; on the way the sum over keys of p · dp, which is outputGrad · output.
__global__ void queryGradient(AttentionShape shape, const float* query, const float* key, const float* value,
                              const float* logSum, const float* output, const float* outputGrad, float* grad, float* dots)
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
    for (int k = 0; k <= at.position; ++k) {
        const Row keys = load(key, at.first + k, hidden, column, size, at.lane);
        const float p = expf(at.scale * dot(q, keys) - shift);
        const float dp = dot(dy, load(value, at.first + k, hidden, column, size, at.lane));
        addScaled(dq, at.scale * p * (dp - mean), keys);
    }
    store(dq, grad, at.token, 3 * hidden, column, size, at.lane);
    if (at.lane == 0)
        dots[at.token * shape.heads + at.head] = mean;
}

/// The gradients of one key and value: all later queries, in order.
__global__ void keyValueGradient(AttentionShape shape, const float* query, const float* key, const float* value,
                                 const float* logSum, const float* outputGrad, const float* dots, float* grad)
{
    const Place at = placeOf(shape);
    if (!at.inside)
        return;
    const int hidden = shape.heads * shape.headSize, column = at.head * shape.headSize, size = shape.headSize;
    const Row k = load(key, at.token, hidden, column, size, at.lane), v = load(value, at.token, hidden, column, size, at.lane);
    Row dk{}, dv{};
    for (int position = at.position; position < shape.length; ++position) {
        const std::size_t token = at.first + position;
        const Row q = load(query, token, hidden, column, size, at.lane), dy = load(outputGrad, token, hidden, column, size, at.lane);
        const float p = expf(at.scale * dot(q, k) - logSum[token * shape.heads + at.head]);
        addScaled(dv, p, dy);
        addScaled(dk, at.scale * p * (dot(dy, v) - dots[token * shape.heads + at.head]), q);
    }
    store(dk, grad, at.token, 3 * hidden, hidden + column, size, at.lane);
    store(dv, grad, at.token, 3 * hidden, 2 * hidden + column, size, at.lane);
}

unsigned blocks(const AttentionShape& shape)
{
    return unsigned((shape.tokens() * shape.heads + warps - 1) / warps);
}

} // namespace

void attentionForward(cudaStream_t stream, AttentionShape shape, std::span<const float> query, std::span<const float> key,
                      std::span<const float> value, std::span<float> logSum, std::span<float> output)
{
    assert(shape.pieces == 1 && shape.headSize <= 32 * most);
    if (shape.tokens() > 0)
        forward<<<blocks(shape), blockSize, 0, stream>>>(shape, query.data(), key.data(), value.data(), logSum.data(), output.data());
}

void attentionInputGrad(cudaStream_t stream, AttentionShape shape, std::span<const float> query, std::span<const float> key,
                        std::span<const float> value, std::span<const float> logSum, std::span<const float> output,
                        std::span<const float> outputGrad, std::span<float> queryKeyValueGrad, std::span<float> dots)
{
    assert(shape.pieces == 1 && shape.headSize <= 32 * most);
    if (shape.tokens() == 0)
        return;
    queryGradient<<<blocks(shape), blockSize, 0, stream>>>(shape, query.data(), key.data(), value.data(), logSum.data(),
                                                           output.data(), outputGrad.data(), queryKeyValueGrad.data(), dots.data());
    keyValueGradient<<<blocks(shape), blockSize, 0, stream>>>(shape, query.data(), key.data(), value.data(), logSum.data(),
                                                              outputGrad.data(), dots.data(), queryKeyValueGrad.data());
}

} // namespace pipewright::kernels::cuda
