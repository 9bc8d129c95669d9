// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/attention.h"

#include "kernels/host/gemm.h"
#include "kernels/host/simd.h"
#include "kernels/host/softmax.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace pipewright::kernels {
namespace {

/// gradient[query][key] = scale · p · (gradient - sum over keys of p · gradient), the softmax's gradient
/// with the score scale folded in. p is 0 for later keys, hence so is the result.
PIPEWRIGHT_VECTOR_CLONES
void softmaxInputGrad(std::size_t length, float scale, const float* probabilities, float* gradient)
{
    for (std::size_t query = 0; query < length; ++query, probabilities += length, gradient += length) {
        const float sum = sumInLanes(query + 1, [=](std::size_t key) { return probabilities[key] * gradient[key]; });
        for (std::size_t key = 0; key < length; ++key)
            gradient[key] = scale * probabilities[key] * (gradient[key] - sum);
    }
}

} // namespace

void attentionForward(AttentionShape shape, std::span<const float> query, std::span<const float> key,
                      std::span<const float> value, std::span<float> probabilities, std::span<float> output)
{
    const int hidden = shape.hidden(), length = shape.length, size = shape.headSize;
    [[maybe_unused]] const std::size_t elements = shape.tokens() * hidden;
    assert(query.size() == elements && key.size() == elements && value.size() == elements);
    assert(output.size() == elements && probabilities.size() == shape.scores());
    const float scale = 1.0f / std::sqrt(float(size));
    float* p = probabilities.data();
    for (int sequence = 0; sequence < shape.sequences; ++sequence) {
        for (int head = 0; head < shape.heads; ++head, p += std::size_t(length) * length) {
            const std::size_t at = std::size_t(sequence) * length * hidden + std::size_t(head) * size;
            gemm(length, length, size, 1, {&query[at], hidden}, {&key[at], hidden, true}, 0, p, length);
            for (int row = 0; row < length; ++row) {
                float* scores = p + std::size_t(row) * length;
                softmaxRow(std::size_t(row) + 1, scale, scores);
                std::fill(scores + row + 1, scores + length, 0.0f);
            }
            gemm(length, size, length, 1, {p, length}, {&value[at], hidden}, 0, &output[at], hidden);
        }
    }
}

void attentionInputGrad(AttentionShape shape, std::span<const float> query, std::span<const float> key,
                        std::span<const float> value, std::span<const float> probabilities,
                        std::span<const float> outputGrad, std::span<float> queryKeyValueGrad,
                        std::span<float> scoresGrad)
{
    const int hidden = shape.hidden(), length = shape.length, size = shape.headSize;
    [[maybe_unused]] const std::size_t elements = shape.tokens() * hidden;
    assert(query.size() == elements && key.size() == elements && value.size() == elements);
    assert(outputGrad.size() == elements && queryKeyValueGrad.size() == 3 * elements);
    assert(probabilities.size() == shape.scores() && scoresGrad.size() == shape.scores());
    const float scale = 1.0f / std::sqrt(float(size));
    const float* p = probabilities.data();
    float* ds = scoresGrad.data();
    const std::size_t matrix = std::size_t(length) * length;
    for (int sequence = 0; sequence < shape.sequences; ++sequence) {
        for (int head = 0; head < shape.heads; ++head, p += matrix, ds += matrix) {
            const std::size_t row = std::size_t(sequence) * length, column = std::size_t(head) * size;
            const std::size_t at = row * hidden + column;
            float* dQuery = &queryKeyValueGrad[row * 3 * hidden + column];
            float* dKey = dQuery + hidden;
            float* dValue = dKey + hidden;
            gemm(length, size, length, 1, {p, length, true}, {&outputGrad[at], hidden}, 0, dValue, 3 * hidden);
            gemm(length, length, size, 1, {&outputGrad[at], hidden}, {&value[at], hidden, true}, 0, ds, length);
            softmaxInputGrad(std::size_t(length), scale, p, ds);
            gemm(length, size, length, 1, {ds, length}, {&key[at], hidden}, 0, dQuery, 3 * hidden);
            gemm(length, size, length, 1, {ds, length, true}, {&query[at], hidden}, 0, dKey, 3 * hidden);
        }
    }
}

} // namespace pipewright::kernels
