// SPDX-License-Identifier: GPL-3.0-or-later
// Per sequence and head, matrix products over slices of the operands, without copies: scores, softmax of each row,
// values; the backward by the chain rule with the stored probabilities (Vaswani et al., arXiv 1706.03762). Costs: the
// header.
#include "kernels/calls.h"

#include "kernels/host/gemm.h"
#include "kernels/host/simd.h"
#include "kernels/host/softmax.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace pipewright::kernels {
namespace {

/// gradient[query][key] = scale · p · (gradient - sum over keys of p · gradient), the softmax's gradient
/// with the score scale folded in, over the first `keys` of each row of `stride`. Row 0 sees `earlier` + 1 keys.
/// p is 0 for later keys, hence so is the result.
PIPEWRIGHT_VECTOR_CLONES
void softmaxInputGrad(std::size_t rows, std::size_t earlier, std::size_t stride, float scale,
                      const float* probabilities, float* gradient)
{
    const std::size_t keys = earlier + rows;
    for (std::size_t query = 0; query < rows; ++query, probabilities += stride, gradient += stride) {
        const float sum =
            sumInLanes(earlier + query + 1, [=](std::size_t key) { return probabilities[key] * gradient[key]; });
        for (std::size_t key = 0; key < keys; ++key)
            gradient[key] = scale * probabilities[key] * (gradient[key] - sum);
    }
}

void addRows(int rows, int columns, const float* from, int fromStride, float* to, int toStride)
{
    for (int row = 0; row < rows; ++row, from += fromStride, to += toStride)
        for (int column = 0; column < columns; ++column)
            to[column] += from[column];
}

} // namespace

void run(const AttentionForward& call)
{
    const auto& [shape, query, key, value, probabilities, output, earlier, bf16] = call;
    const int hidden = shape.hidden(), length = shape.length, size = shape.headSize, keys = shape.keys();
    const int piece = int(earlier.saved.size()), before = piece * length;
    [[maybe_unused]] const std::size_t elements = shape.tokens() * hidden;
    assert(query.size() == elements && key.size() == elements && value.size() == elements && piece < shape.pieces);
    assert(output.size() == elements && probabilities.size() == shape.scores());
    const float scale = 1.0f / std::sqrt(float(size));
    float* p = probabilities.data();
    for (int sequence = 0; sequence < shape.sequences; ++sequence) {
        for (int head = 0; head < shape.heads; ++head, p += std::size_t(length) * keys) {
            const std::size_t at = std::size_t(sequence) * length * hidden + std::size_t(head) * size;
            for (int i = 0; i <= piece; ++i) {
                const float* keysOf = i < piece ? earlier.saved[i] + earlier.key : key.data();
                gemm(length, length, size, 1, {&query[at], hidden}, {keysOf + at, hidden, true}, 0, p + i * length,
                     keys);
            }
            for (int row = 0; row < length; ++row) {
                float* scores = p + std::size_t(row) * keys;
                softmaxRow(std::size_t(before + row) + 1, scale, scores);
                std::fill(scores + before + row + 1, scores + keys, 0.0f);
            }
            for (int i = 0; i <= piece; ++i) {
                const float* valuesOf = i < piece ? earlier.saved[i] + earlier.value : value.data();
                gemm(length, size, length, 1, {p + i * length, keys}, {valuesOf + at, hidden}, i == 0 ? 0 : 1,
                     &output[at], hidden);
            }
        }
    }
}

void run(const AttentionInputGrad& call)
{
    const auto& [shape, query, key, value, probabilities, output, outputGrad, queryKeyValueGrad, scoresGrad, earlier,
                 sequenceGradient, bf16] = call;
    const int hidden = shape.hidden(), length = shape.length, size = shape.headSize, keys = shape.keys();
    const int piece = int(earlier.saved.size());
    const bool isLast = piece == shape.pieces - 1;
    const std::size_t elements = shape.tokens() * hidden;
    assert(query.size() == elements && key.size() == elements && value.size() == elements && piece < shape.pieces);
    assert(outputGrad.size() == elements && queryKeyValueGrad.size() == 3 * elements);
    assert(probabilities.size() == shape.scores() && scoresGrad.size() == shape.scores());
    assert(sequenceGradient.size() == shape.sequenceGradient());
    const float scale = 1.0f / std::sqrt(float(size));
    const float* p = probabilities.data();
    float* ds = scoresGrad.data();
    const std::size_t matrix = std::size_t(length) * keys;
    for (int sequence = 0; sequence < shape.sequences; ++sequence) {
        for (int head = 0; head < shape.heads; ++head, p += matrix, ds += matrix) {
            const std::size_t row = std::size_t(sequence) * length, column = std::size_t(head) * size;
            const std::size_t at = row * hidden + column;
            float* dQuery = &queryKeyValueGrad[row * 3 * hidden + column];
            float* dKey = dQuery + hidden;
            float* dValue = dKey + hidden;
            const auto owed = [&](int i) { return call.sequenceGradient.data() + 2 * std::size_t(i) * elements + at; };
            for (int i = 0; i <= piece; ++i) {
                const float* valuesOf = i < piece ? earlier.saved[i] + earlier.value : value.data();
                const Operand share{p + i * length, keys, true};
                if (i < piece)
                    gemm(length, size, length, 1, share, {&outputGrad[at], hidden}, isLast ? 0 : 1, owed(i) + elements,
                         hidden);
                else
                    gemm(length, size, length, 1, share, {&outputGrad[at], hidden}, 0, dValue, 3 * hidden);
                gemm(length, length, size, 1, {&outputGrad[at], hidden}, {valuesOf + at, hidden, true}, 0,
                     ds + i * length, keys);
            }
            softmaxInputGrad(std::size_t(length), std::size_t(piece) * length, std::size_t(keys), scale, p, ds);
            for (int i = 0; i <= piece; ++i) {
                const float* keysOf = i < piece ? earlier.saved[i] + earlier.key : key.data();
                const Operand share{ds + i * length, keys, true};
                gemm(length, size, length, 1, {ds + i * length, keys}, {keysOf + at, hidden}, i == 0 ? 0 : 1, dQuery,
                     3 * hidden);
                if (i < piece)
                    gemm(length, size, length, 1, share, {&query[at], hidden}, isLast ? 0 : 1, owed(i), hidden);
                else
                    gemm(length, size, length, 1, share, {&query[at], hidden}, 0, dKey, 3 * hidden);
            }
            if (!isLast) {
                addRows(length, size, owed(piece), hidden, dKey, 3 * hidden);
                addRows(length, size, owed(piece) + elements, hidden, dValue, 3 * hidden);
            }
        }
    }
}

} // namespace pipewright::kernels
