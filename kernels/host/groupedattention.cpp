// SPDX-License-Identifier: GPL-3.0-or-later
// In tiles of queries x keys on the stack: the forward keeps a running maximum and sum per query, the backward
// recomputes a tile's probabilities from the kept logarithm and adds the tile's part to all three gradients (Dao et
// al., arXiv 2205.14135, algorithms 1 and 4). The order of tiles, and of keys within them, is fixed.
#include "kernels/calls.h"

#include "kernels/host/gemm.h"
#include "kernels/host/simd.h"
#include "kernels/linearbiases.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace pipewright::kernels {
namespace {

constexpr int tile = 64;
using Scores = std::array<float, std::size_t(tile) * tile>;

/// The keys [begin, end) of a tile that one query attends to.
struct Seen {
    int begin, end;
};

/// For a tile of `count` keys from position `key` on, and the query at `position`.
Seen seenBy(const GroupedAttentionShape& shape, int position, int key, int count)
{
    if (!shape.causal)
        return {0, count};
    const int first = shape.window > 0 ? position - shape.window + 1 - key : 0;
    const int begin = std::clamp(first, 0, count);
    return {begin, std::clamp(position + 1 - key, begin, count)};
}

bool seesNothing(const GroupedAttentionShape& shape, int position, int queries, int key, int count)
{
    if (!shape.causal)
        return false;
    const bool later = key > position + queries - 1;
    return later || (shape.window > 0 && key + count - 1 < position - shape.window + 1);
}

/// Visits the tiles of the keys of a sequence, piece by piece: visit(piece, first key within it, its position, keys).
template<class Visit>
void forEachKeyTile(const GroupedAttentionShape& shape, int piece, Visit visit)
{
    const int last = shape.causal ? piece : shape.pieces - 1;
    for (int i = 0; i <= last; ++i)
        for (int key = 0; key < shape.length; key += tile)
            visit(i, key, i * shape.length + key, std::min(tile, shape.length - key));
}

/// Scores of one query become e^(score - largest), others 0. Returns their sum and updates the largest.
PIPEWRIGHT_VECTOR_CLONES
float exponentialsOf(std::size_t begin, std::size_t end, std::size_t count, float* row, float* largest)
{
    for (std::size_t i = 0; i < begin; ++i)
        row[i] = 0;
    for (std::size_t i = end; i < count; ++i)
        row[i] = 0;
    if (begin == end)
        return 0;
    const float now = maxInLanes(end - begin, row + begin);
    *largest = *largest < now ? now : *largest;
    const float shift = *largest;
    float* seen = row + begin;
    for (std::size_t i = 0; i < end - begin; ++i)
        seen[i] = exponential(seen[i] - shift);
    return sumInLanes(end - begin, [=](std::size_t i) { return seen[i]; });
}

PIPEWRIGHT_VECTOR_CLONES
void scaleRow(std::size_t count, float factor, float* row)
{
    for (std::size_t i = 0; i < count; ++i)
        row[i] *= factor;
}

/// Scores become probabilities, others 0.
PIPEWRIGHT_VECTOR_CLONES
void probabilitiesOf(std::size_t begin, std::size_t end, std::size_t count, float logSum, float* row)
{
    for (std::size_t i = 0; i < begin; ++i)
        row[i] = 0;
    for (std::size_t i = end; i < count; ++i)
        row[i] = 0;
    for (std::size_t i = begin; i < end; ++i)
        row[i] = exponential(row[i] - logSum);
}

/// Scores become cap · tanh(score / cap).
void capRow(std::size_t count, float cap, float* row)
{
    for (std::size_t i = 0; i < count; ++i)
        row[i] = cap * std::tanh(row[i] / cap);
}

/// Gradients of capped scores become those of the scores before.
PIPEWRIGHT_VECTOR_CLONES
void uncapGradient(std::size_t count, float cap, const float* capped, float* grad)
{
    for (std::size_t i = 0; i < count; ++i)
        grad[i] *= 1.0f - (capped[i] / cap) * (capped[i] / cap);
}

/// scale · p · (dp - dot).
PIPEWRIGHT_VECTOR_CLONES
void scoreGradient(std::size_t count, float scale, float dot, const float* p, float* grad)
{
    for (std::size_t i = 0; i < count; ++i)
        grad[i] = scale * p[i] * (grad[i] - dot);
}

PIPEWRIGHT_VECTOR_CLONES
float dotOf(std::size_t count, const float* a, const float* b)
{
    return sumInLanes(count, [=](std::size_t i) { return a[i] * b[i]; });
}

PIPEWRIGHT_VECTOR_CLONES
void addTo(std::size_t count, const float* from, float* to)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] += from[i];
}

/// Adds slope · (distance + i) to the scores of a row.
PIPEWRIGHT_VECTOR_CLONES
void addBiases(std::size_t count, float slope, int distance, float* row)
{
    for (std::size_t i = 0; i < count; ++i)
        row[i] += slope * float(distance + int(i));
}

/// Row widths and where a head begins.
struct Widths {
    int query, key, value, output;
    explicit Widths(const GroupedAttentionShape& shape)
        : query(shape.heads * shape.querySize), key(shape.keyValueHeads * shape.querySize),
          value(shape.keyValueHeads * shape.valueSize), output(shape.heads * shape.valueSize)
    {
    }
};

/// Of the linear biases of a head; 0: there are none.
float slopeOf(const GroupedAttentionShape& shape, int head)
{
    return shape.biasedHeads > 0 ? linearBiasSlope(shape.biasedHeads, shape.firstHead + head) : 0.0f;
}

std::size_t at(std::size_t row, int width, int head, int size)
{
    return row * std::size_t(width) + std::size_t(head) * std::size_t(size);
}

/// One head of a tile of queries, the first of them at `row` of the matrices and at `position` of its sequence.
void forwardTile(const GroupedAttentionForward& call, const Widths& widths, std::size_t sequence, int head, int query)
{
    const GroupedAttentionShape& shape = call.shape;
    const int piece = int(call.earlier.saved.size()), queries = std::min(tile, shape.length - query);
    const int shared = head / (shape.heads / shape.keyValueHeads), position = piece * shape.length + query;
    const std::size_t first = sequence * std::size_t(shape.length), row = first + std::size_t(query);
    float* out = call.output.data() + at(row, widths.output, head, shape.valueSize);
    for (int q = 0; q < queries; ++q)
        std::fill_n(out + std::size_t(q) * widths.output, shape.valueSize, 0.0f);
    std::array<float, tile> largest, sums{};
    largest.fill(call.sinks.empty() ? -std::numeric_limits<float>::infinity() : call.sinks[std::size_t(head)]);
    sums.fill(call.sinks.empty() ? 0.0f : 1.0f); // the share of the sink, which has no key
    const float slope = slopeOf(shape, head);
    Scores scores;
    forEachKeyTile(shape, piece, [&](int of, int key, int keyPosition, int keys) {
        if (seesNothing(shape, position, queries, keyPosition, keys))
            return;
        const float* keysOf = of < piece ? call.earlier.saved[std::size_t(of)] + call.earlier.key : call.key.data();
        const float* valuesOf =
            of < piece ? call.earlier.saved[std::size_t(of)] + call.earlier.value : call.value.data();
        const std::size_t keyRow = first + std::size_t(key);
        gemm(queries, keys, shape.querySize, shape.scale,
             {call.query.data() + at(row, widths.query, head, shape.querySize), widths.query},
             {keysOf + at(keyRow, widths.key, shared, shape.querySize), widths.key, true}, 0, scores.data(), tile);
        for (int q = 0; shape.softCap > 0 && q < queries; ++q)
            capRow(std::size_t(keys), shape.softCap, scores.data() + std::size_t(q) * tile);
        for (int q = 0; slope > 0 && q < queries; ++q)
            addBiases(std::size_t(keys), slope, keyPosition - position - q, scores.data() + std::size_t(q) * tile);
        for (int q = 0; q < queries; ++q) {
            const Seen seen = seenBy(shape, position + q, keyPosition, keys);
            float& most = largest[std::size_t(q)];
            const float before = most;
            const float sum = exponentialsOf(std::size_t(seen.begin), std::size_t(seen.end), std::size_t(keys),
                                             scores.data() + std::size_t(q) * tile, &most);
            if (most > before && sums[std::size_t(q)] > 0) {
                const float shrink = exponential(before - most);
                sums[std::size_t(q)] *= shrink;
                scaleRow(std::size_t(shape.valueSize), shrink, out + std::size_t(q) * widths.output);
            }
            sums[std::size_t(q)] += sum;
        }
        gemm(queries, shape.valueSize, keys, 1, {scores.data(), tile},
             {valuesOf + at(keyRow, widths.value, shared, shape.valueSize), widths.value}, 1, out, widths.output);
    });
    float* logSums = call.logSums.data() + (sequence * std::size_t(shape.heads) + std::size_t(head)) * shape.length;
    for (int q = 0; q < queries; ++q) {
        scaleRow(std::size_t(shape.valueSize), 1.0f / sums[std::size_t(q)], out + std::size_t(q) * widths.output);
        logSums[query + q] = largest[std::size_t(q)] + std::log(sums[std::size_t(q)]);
    }
}

/// Where the gradients of a piece's keys and values are collected.
struct Destination {
    float *key, *value;
};

/// Adds the gradients of one head for one tile of queries and one tile of keys.
void backwardTile(const GroupedAttentionInputGrad& call, const Widths& widths, std::size_t sequence, int head,
                  int query, const float* keysOf, const float* valuesOf, Destination to, int key, int keyPosition,
                  int keys)
{
    const GroupedAttentionShape& shape = call.shape;
    const int piece = int(call.earlier.saved.size()), queries = std::min(tile, shape.length - query);
    const int shared = head / (shape.heads / shape.keyValueHeads), position = piece * shape.length + query;
    if (seesNothing(shape, position, queries, keyPosition, keys))
        return;
    const std::size_t first = sequence * std::size_t(shape.length), row = first + std::size_t(query),
                      keyRow = first + std::size_t(key);
    const Operand q{call.query.data() + at(row, widths.query, head, shape.querySize), widths.query};
    const Operand k{keysOf + at(keyRow, widths.key, shared, shape.querySize), widths.key};
    const Operand v{valuesOf + at(keyRow, widths.value, shared, shape.valueSize), widths.value};
    const Operand dy{call.outputGrad.data() + at(row, widths.output, head, shape.valueSize), widths.output};
    const float slope = slopeOf(shape, head);
    Scores p, grad, capped;
    gemm(queries, keys, shape.querySize, shape.scale, q, {k.values, k.leading, true}, 0, p.data(), tile);
    gemm(queries, keys, shape.valueSize, 1, dy, {v.values, v.leading, true}, 0, grad.data(), tile);
    const std::size_t numbers = (sequence * std::size_t(shape.heads) + std::size_t(head)) * std::size_t(shape.length);
    for (int i = 0; i < queries; ++i) {
        const std::size_t of = numbers + std::size_t(query + i);
        const Seen seen = seenBy(shape, position + i, keyPosition, keys);
        float* probabilities = p.data() + std::size_t(i) * tile;
        if (shape.softCap > 0) {
            capRow(std::size_t(keys), shape.softCap, probabilities);
            std::copy_n(probabilities, keys, capped.data());
        }
        if (slope > 0)
            addBiases(std::size_t(keys), slope, keyPosition - position - i, probabilities);
        probabilitiesOf(std::size_t(seen.begin), std::size_t(seen.end), std::size_t(keys), call.logSums[of],
                        probabilities);
        scoreGradient(std::size_t(keys), shape.scale, call.dots[of], probabilities,
                      grad.data() + std::size_t(i) * tile);
        if (shape.softCap > 0)
            uncapGradient(std::size_t(keys), shape.softCap, capped.data(), grad.data() + std::size_t(i) * tile);
    }
    gemm(keys, shape.valueSize, queries, 1, {p.data(), tile, true}, dy, 1,
         to.value + at(keyRow, widths.value, shared, shape.valueSize), widths.value);
    gemm(keys, shape.querySize, queries, 1, {grad.data(), tile, true}, q, 1,
         to.key + at(keyRow, widths.key, shared, shape.querySize), widths.key);
    gemm(queries, shape.querySize, keys, 1, {grad.data(), tile}, k, 1,
         call.queryGrad.data() + at(row, widths.query, head, shape.querySize), widths.query);
}

void fillDots(const GroupedAttentionInputGrad& call, const Widths& widths)
{
    const GroupedAttentionShape& shape = call.shape;
    const auto size = std::size_t(shape.valueSize);
    std::size_t number = 0;
    for (int sequence = 0; sequence < shape.sequences; ++sequence)
        for (int head = 0; head < shape.heads; ++head)
            for (int query = 0; query < shape.length; ++query, ++number) {
                const std::size_t place = at(std::size_t(sequence) * std::size_t(shape.length) + std::size_t(query),
                                             widths.output, head, shape.valueSize);
                call.dots[number] = dotOf(size, &call.outputGrad[place], &call.output[place]);
            }
}

/// The gradients of a query's scores sum to 0: the sink's is minus the sum over the keys.
void addSinkGrads(const GroupedAttentionInputGrad& call)
{
    const GroupedAttentionShape& shape = call.shape;
    const auto heads = std::size_t(shape.heads), length = std::size_t(shape.length);
    for (std::size_t row = 0; row < std::size_t(shape.sequences) * heads; ++row) {
        float sum = 0;
        for (std::size_t query = row * length; query < (row + 1) * length; ++query)
            sum += exponential(call.sinks[row % heads] - call.logSums[query]) * call.dots[query];
        call.sinkGrad[row % heads] -= sum;
    }
}

} // namespace

void run(const GroupedAttentionForward& call)
{
    const GroupedAttentionShape& shape = call.shape;
    assert(call.query.size() == shape.queries() && call.key.size() == shape.keys());
    assert(call.value.size() == shape.values() && call.output.size() == shape.outputs());
    assert(call.logSums.size() == shape.numbers() && shape.heads % shape.keyValueHeads == 0);
    const Widths widths(shape);
    for (int sequence = 0; sequence < shape.sequences; ++sequence)
        for (int head = 0; head < shape.heads; ++head)
            for (int query = 0; query < shape.length; query += tile)
                forwardTile(call, widths, std::size_t(sequence), head, query);
}

void run(const GroupedAttentionInputGrad& call)
{
    const GroupedAttentionShape& shape = call.shape;
    assert(call.query.size() == shape.queries() && call.key.size() == shape.keys());
    assert(call.value.size() == shape.values() && call.output.size() == shape.outputs());
    assert(call.outputGrad.size() == shape.outputs() && call.queryGrad.size() == shape.queries());
    assert(call.keyGrad.size() == shape.keys() && call.valueGrad.size() == shape.values());
    assert(call.logSums.size() == shape.numbers() && call.dots.size() == shape.numbers());
    assert(call.sequenceGradient.size() == shape.sequenceGradient());
    const Widths widths(shape);
    const int piece = int(call.earlier.saved.size());
    const std::size_t perPiece = shape.keys() + shape.values();
    const auto owed = [&](int of) {
        float* keys = call.sequenceGradient.data() + std::size_t(of) * perPiece;
        return Destination{keys, keys + shape.keys()};
    };
    fillDots(call, widths);
    if (!call.sinks.empty())
        addSinkGrads(call);
    for (const std::span<float> grad : {call.queryGrad, call.keyGrad, call.valueGrad})
        std::fill(grad.begin(), grad.end(), 0.0f);
    if (piece == shape.pieces - 1)
        std::fill(call.sequenceGradient.begin(), call.sequenceGradient.end(), 0.0f);
    const int group = shape.heads / shape.keyValueHeads;
    for (int sequence = 0; sequence < shape.sequences; ++sequence)
        for (int shared = 0; shared < shape.keyValueHeads; ++shared)
            forEachKeyTile(shape, piece, [&](int of, int key, int keyPosition, int keys) {
                const bool own = of == piece;
                const float* before = own ? nullptr : call.earlier.saved[std::size_t(of)];
                const Destination to = own ? Destination{call.keyGrad.data(), call.valueGrad.data()} : owed(of);
                for (int head = shared * group; head < (shared + 1) * group; ++head)
                    for (int query = 0; query < shape.length; query += tile)
                        backwardTile(call, widths, std::size_t(sequence), head, query,
                                     own ? call.key.data() : before + call.earlier.key,
                                     own ? call.value.data() : before + call.earlier.value, to, key, keyPosition, keys);
            });
    if (piece < shape.pieces - 1) {
        addTo(shape.keys(), owed(piece).key, call.keyGrad.data());
        addTo(shape.values(), owed(piece).value, call.valueGrad.data());
    }
}

} // namespace pipewright::kernels
