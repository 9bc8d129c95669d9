// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of bf16 values on tensor cores, in the tiles and the order of attention.cu (Dao, arXiv 2307.08691). A block
// has four warps, each with 16 queries, or keys where the gradients of keys and values are summed; what they look at
// passes through shared memory, a tile at a time. Scores stay in registers: the layout of a product's sums is that of
// the next one's left factor. Probabilities and the scores' gradients are rounded to bf16 before they are multiplied,
// everything else is fp32. Heads of up to 128 elements keep all in registers but for a few; wider ones spill.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/tensorcores.cuh"

#include <algorithm>
#include <type_traits>

namespace pipewright::kernels::cuda {

namespace {

constexpr int warps = 4, threads = 32 * warps, rowsOfWarp = 16, rowsOfBlock = warps * rowsOfWarp;
constexpr int sliceWidth = 64; ///< heads are padded to a multiple of it

/// What passes by a block: rows of `width` elements, two in a word. The pad of four words lets the lanes of a warp read
/// different banks.
template<int slices>
struct Tile {
    static constexpr int width = slices * sliceWidth, words = width / 2 + 4,
                         rows = slices == 1 ? 64 : 32; ///< as many as shared memory, and registers, have room for
    std::uint32_t pairs[rows][words];
};

__device__ float elementOf(const float* row, int column, int columns)
{
    return column < columns ? row[column] : 0.0f;
}

/// Lines from `lines` on and elements from `columns` on are zeros.
template<int slices>
__device__ void load(Tile<slices>& to, const float* from, std::int64_t row, int first, int lines, int columns)
{
    using Of = Tile<slices>;
    for (int i = int(threadIdx.x); i < Of::rows * (Of::width / 2); i += threads) {
        const int line = i / (Of::width / 2), pair = i % (Of::width / 2);
        const float* const at = from + (first + line) * row;
        const int have = first + line < lines ? columns : 0;
        to.pairs[line][pair] = bf16Pair(elementOf(at, 2 * pair, have), elementOf(at, 2 * pair + 1, have));
    }
}

/// A left factor: the warp's 16 rows, in steps of 16 elements.
template<int steps>
__device__ void loadLeft(std::uint32_t (&to)[steps][4], const float* from, std::int64_t row, int first, int lines,
                         int columns)
{
#pragma unroll // or the registers are memory, as in what follows
    for (int step = 0; step < steps; ++step)
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const int line = first + laneRow() + part % 2 * 8, column = step * 16 + part / 2 * 8 + laneColumn();
            const float* const at = from + line * row;
            const int have = line < lines ? columns : 0;
            to[step][part] = bf16Pair(elementOf(at, column, have), elementOf(at, column + 1, have));
        }
}

/// sums[n] += left · the tile's rows 8 n to 8 n + 7, transposed: products of rows with rows.
template<int slices, int steps, int groups>
__device__ void multiplyByRows(float (&sums)[groups][4], const std::uint32_t (&left)[steps][4],
                               const Tile<slices>& tile)
{
    static_assert(steps * 16 == Tile<slices>::width && groups * 8 == Tile<slices>::rows);
#pragma unroll
    for (int n = 0; n < groups; ++n)
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            const std::uint32_t* const row = tile.pairs[n * 8 + laneRow()] + step * 8 + laneColumn() / 2;
            const std::uint32_t right[2] = {row[0], row[4]};
            multiplyInWarp(sums[n], left[step], right);
        }
}

/// Of a product's sums, as a left factor: 16 of their columns.
template<int groups>
__device__ void leftOf(std::uint32_t (&left)[4], const float (&sums)[groups][4], int step)
{
    left[0] = bf16Pair(sums[2 * step][0], sums[2 * step][1]);
    left[1] = bf16Pair(sums[2 * step][2], sums[2 * step][3]);
    left[2] = bf16Pair(sums[2 * step + 1][0], sums[2 * step + 1][1]);
    left[3] = bf16Pair(sums[2 * step + 1][2], sums[2 * step + 1][3]);
}

/// results[n] += weights · columns 8 n to 8 n + 7 of the tile: rows weighted and added up.
template<int slices, int groups, int columns>
__device__ void addWeighted(float (&results)[columns][4], const float (&weights)[groups][4], const Tile<slices>& tile)
{
    static_assert(columns * 8 == Tile<slices>::width && groups * 8 == Tile<slices>::rows);
#pragma unroll
    for (int step = 0; step < groups / 2; ++step) {
        std::uint32_t left[4];
        leftOf(left, weights, step);
        const int row = step * 16 + laneColumn(), half = laneRow() % 2 * 16;
#pragma unroll
        for (int n = 0; n < columns; ++n) {
            const int word = n * 4 + laneRow() / 2;
            std::uint32_t right[2];
#pragma unroll
            for (int part = 0; part < 2; ++part) {
                const std::uint32_t upper = tile.pairs[row + part * 8][word] >> half & 0xffff,
                                    lower = tile.pairs[row + part * 8 + 1][word] >> half & 0xffff;
                right[part] = upper | lower << 16;
            }
            multiplyInWarp(results[n], left, right);
        }
    }
}

/// take(element of the row, value) of a lane's row, the first or the second.
template<int groups, typename Take>
__device__ void forOwnElements(const float (&sums)[groups][4], int half, int columns, Take take)
{
#pragma unroll
    for (int n = 0; n < groups; ++n)
#pragma unroll
        for (int j = 0; j < 2; ++j)
            if (const int column = n * 8 + laneColumn() + j; column < columns)
                take(column, sums[n][2 * half + j]);
}

/// Over the four lanes that share a row; all of them get it.
template<typename Combine>
__device__ float combineLanes(float value, Combine combine)
{
    for (int lanes = 2; lanes > 0; lanes /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    return value;
}

/// Of a block: its first query, the head of its keys and values, and the sequence.
struct Queries {
    int first, group, sequence;
};

/// use(piece, first key) for every tile of keys and values of which these queries see any, once it is in shared memory.
template<int slices, typename Pass, typename Use>
__device__ void forKeysAndValues(const Problem& of, const Pass& with, Queries queries, Tile<slices>& keys,
                                 Tile<slices>& values, Use use)
{
    constexpr int rows = Tile<slices>::rows;
    const GroupedAttentionShape& shape = of.shape;
    const std::int64_t token = std::int64_t(queries.sequence) * shape.length;
    for (int piece = 0; piece <= of.earlier.count; ++piece)
        for (int at = 0; at < shape.length; at += rows) {
            if (of.seesNothing(of.queryPosition(queries.first), rowsOfBlock, of.keyPosition(piece, at), rows))
                continue;
            __syncthreads(); // what was in the tiles is used
            load(keys, of.earlier.keys(piece, with.key) + token * of.keyRow() + queries.group * shape.querySize,
                 of.keyRow(), at, shape.length, shape.querySize);
            load(values, of.earlier.values(piece, with.value) + token * of.valueRow() + queries.group * shape.valueSize,
                 of.valueRow(), at, shape.length, shape.valueSize);
            __syncthreads();
            use(piece, at);
        }
}

/// Blocks: 64 queries, heads, sequences.
template<int slices>
__global__ void tensorForward(Problem of, AttentionForwardPass with)
{
    using Rows = Tile<slices>;
    __shared__ Rows keys, values;
    constexpr int steps = Rows::width / 16, groups = Rows::rows / 8;
    const GroupedAttentionShape& shape = of.shape;
    const int block = int(blockIdx.x) * rowsOfBlock, first = block + int(threadIdx.x) / 32 * rowsOfWarp,
              head = int(blockIdx.y), sequence = int(blockIdx.z), group = head / (shape.heads / shape.keyValueHeads);
    const std::int64_t token = std::int64_t(sequence) * shape.length;
    std::uint32_t queries[steps][4];
    loadLeft(queries, with.query + token * of.queryRow() + head * shape.querySize, of.queryRow(), first, shape.length,
             shape.querySize);
    float sums[Rows::width / 8][4] = {}, largest[2], weight[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        largest[half] = with.sinks ? with.sinks[head] : -INFINITY;
        weight[half] = with.sinks ? 1.0f : 0.0f; // what takes part without a key
    }
    forKeysAndValues(of, with, {block, group, sequence}, keys, values, [&](int piece, int at) {
        float scores[groups][4] = {};
        multiplyByRows(scores, queries, keys);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int position = of.queryPosition(first + laneRow() + half * 8);
            float most = -INFINITY;
#pragma unroll
            for (int n = 0; n < groups; ++n)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const int k = at + n * 8 + laneColumn() + j;
                    float& score = scores[n][2 * half + j];
                    const bool seen = k < shape.length && of.sees(position, of.keyPosition(piece, k));
                    score = seen ? of.capped(shape.scale * score) : -INFINITY;
                    most = fmaxf(most, score);
                }
            most = fmaxf(largest[half], combineLanes(most, [](float a, float b) { return fmaxf(a, b); }));
            const float shrink = largest[half] == -INFINITY ? 0.0f : expf(largest[half] - most);
            float sum = 0;
#pragma unroll
            for (int n = 0; n < groups; ++n)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    float& score = scores[n][2 * half + j];
                    score = score == -INFINITY ? 0.0f : expf(score - most);
                    sum += score;
                }
            weight[half] = weight[half] * shrink + combineLanes(sum, [](float a, float b) { return a + b; });
            largest[half] = most;
#pragma unroll
            for (int n = 0; n < Rows::width / 8; ++n)
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    sums[n][2 * half + j] *= shrink;
        }
        addWeighted(sums, scores, values);
    });
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int query = first + laneRow() + half * 8;
        if (query >= shape.length)
            continue;
        float* const row = with.output + (token + query) * of.outputRow() + head * shape.valueSize;
        forOwnElements(sums, half, shape.valueSize, [&](int column, float sum) { row[column] = sum / weight[half]; });
        if (laneColumn() == 0)
            with.logSums[(std::int64_t(sequence) * shape.heads + head) * shape.length + query] =
                largest[half] + logf(weight[half]);
    }
}

/// Blocks: 64 queries, heads, sequences.
template<int slices>
__global__ void tensorQueryGradient(Problem of, AttentionBackwardPass with)
{
    using Rows = Tile<slices>;
    __shared__ Rows keys, values;
    constexpr int steps = Rows::width / 16, groups = Rows::rows / 8;
    const GroupedAttentionShape& shape = of.shape;
    const int block = int(blockIdx.x) * rowsOfBlock, first = block + int(threadIdx.x) / 32 * rowsOfWarp,
              head = int(blockIdx.y), sequence = int(blockIdx.z), group = head / (shape.heads / shape.keyValueHeads);
    const std::int64_t token = std::int64_t(sequence) * shape.length,
                       numbers = (std::int64_t(sequence) * shape.heads + head) * shape.length;
    std::uint32_t queries[steps][4], grads[steps][4];
    loadLeft(queries, with.query + token * of.queryRow() + head * shape.querySize, of.queryRow(), first, shape.length,
             shape.querySize);
    loadLeft(grads, with.outputGrad + token * of.outputRow() + head * shape.valueSize, of.outputRow(), first,
             shape.length, shape.valueSize);
    float logSum[2] = {}, dot[2] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half)
        if (const int query = first + laneRow() + half * 8; query < shape.length) {
            logSum[half] = with.logSums[numbers + query];
            dot[half] = with.dots[numbers + query];
        }
    float sums[Rows::width / 8][4] = {};
    forKeysAndValues(of, with, {block, group, sequence}, keys, values, [&](int piece, int at) {
        float scores[groups][4] = {}, ofScores[groups][4] = {};
        multiplyByRows(scores, queries, keys);
        multiplyByRows(ofScores, grads, values);
#pragma unroll
        for (int n = 0; n < groups; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int q = first + laneRow() + i / 2 * 8, k = at + n * 8 + laneColumn() + i % 2;
                const bool seen =
                    q < shape.length && k < shape.length && of.sees(of.queryPosition(q), of.keyPosition(piece, k));
                scoreGradient(of, {seen, logSum[i / 2], dot[i / 2]}, scores[n][i], ofScores[n][i]);
            }
        addWeighted(sums, ofScores, keys);
    });
#pragma unroll
    for (int half = 0; half < 2; ++half)
        if (const int query = first + laneRow() + half * 8; query < shape.length) {
            float* const row = with.queryGrad + (token + query) * of.queryGradRow + head * shape.querySize;
            forOwnElements(sums, half, shape.querySize, [&](int column, float sum) { row[column] = sum; });
        }
}

/// Blocks: 64 keys, key and value heads, sequences times the pieces up to the own one; who owes what to whom as in
/// attention.cu.
template<int slices>
__global__ void tensorKeyValueGradient(Problem of, AttentionBackwardPass with)
{
    using Rows = Tile<slices>;
    __shared__ Rows queries, grads;
    __shared__ float logSums[Rows::rows], dots[Rows::rows];
    constexpr int steps = Rows::width / 16, groups = Rows::rows / 8;
    const GroupedAttentionShape& shape = of.shape;
    const int block = int(blockIdx.x) * rowsOfBlock, first = block + int(threadIdx.x) / 32 * rowsOfWarp,
              group = int(blockIdx.y), sequence = int(blockIdx.z) % shape.sequences,
              piece = int(blockIdx.z) / shape.sequences, heads = shape.heads / shape.keyValueHeads;
    const std::int64_t token = std::int64_t(sequence) * shape.length;
    std::uint32_t keys[steps][4], values[steps][4];
    loadLeft(keys, of.earlier.keys(piece, with.key) + token * of.keyRow() + group * shape.querySize, of.keyRow(), first,
             shape.length, shape.querySize);
    loadLeft(values, of.earlier.values(piece, with.value) + token * of.valueRow() + group * shape.valueSize,
             of.valueRow(), first, shape.length, shape.valueSize);
    float keySums[Rows::width / 8][4] = {}, valueSums[Rows::width / 8][4] = {};
    for (int head = group * heads; head < (group + 1) * heads; ++head) {
        const std::int64_t numbers = (std::int64_t(sequence) * shape.heads + head) * shape.length;
        for (int at = 0; at < shape.length; at += Rows::rows) {
            if (of.seesNothing(of.queryPosition(at), Rows::rows, of.keyPosition(piece, block), rowsOfBlock))
                continue;
            __syncthreads(); // what was in the tiles is used
            load(queries, with.query + token * of.queryRow() + head * shape.querySize, of.queryRow(), at, shape.length,
                 shape.querySize);
            load(grads, with.outputGrad + token * of.outputRow() + head * shape.valueSize, of.outputRow(), at,
                 shape.length, shape.valueSize);
            if (const int i = int(threadIdx.x); i < Rows::rows) {
                logSums[i] = at + i < shape.length ? with.logSums[numbers + at + i] : 0.0f;
                dots[i] = at + i < shape.length ? with.dots[numbers + at + i] : 0.0f;
            }
            __syncthreads();
            float scores[groups][4] = {}, ofScores[groups][4] = {};
            multiplyByRows(scores, keys, queries);
            multiplyByRows(ofScores, values, grads);
#pragma unroll
            for (int n = 0; n < groups; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int row = n * 8 + laneColumn() + i % 2, q = at + row, k = first + laneRow() + i / 2 * 8;
                    const bool seen =
                        q < shape.length && k < shape.length && of.sees(of.queryPosition(q), of.keyPosition(piece, k));
                    scoreGradient(of, {seen, logSums[row], dots[row]}, scores[n][i], ofScores[n][i]);
                }
            addWeighted(valueSums, scores, grads);
            addWeighted(keySums, ofScores, queries);
        }
    }
    const bool isOwn = piece == of.earlier.count, isLast = of.earlier.count == shape.pieces - 1;
    const std::int64_t keyCount = std::int64_t(shape.sequences) * shape.length * of.keyRow(),
                       valueCount = std::int64_t(shape.sequences) * shape.length * of.valueRow();
    const bool isOwed = !(isOwn && isLast); // no other piece adds to the last piece's own
    float* const ofPiece = isOwed ? with.owed + piece * (keyCount + valueCount) : nullptr;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int at = first + laneRow() + half * 8;
        if (at >= shape.length)
            continue;
        const std::int64_t keyAt = (token + at) * of.keyRow() + group * shape.querySize,
                           valueAt = (token + at) * of.valueRow() + group * shape.valueSize;
        float* const keyOwed = isOwed ? ofPiece + keyAt : nullptr;
        float* const valueOwed = isOwed ? ofPiece + keyCount + valueAt : nullptr;
        float* const keyTo = isOwn ? with.keyGrad + (token + at) * of.keyGradRow + group * shape.querySize : keyOwed;
        float* const valueTo =
            isOwn ? with.valueGrad + (token + at) * of.valueGradRow + group * shape.valueSize : valueOwed;
        forOwnElements(keySums, half, shape.querySize,
                       [&](int column, float sum) { keyTo[column] = isLast ? sum : sum + keyOwed[column]; });
        forOwnElements(valueSums, half, shape.valueSize,
                       [&](int column, float sum) { valueTo[column] = isLast ? sum : sum + valueOwed[column]; });
    }
}

unsigned blocksOf(int rows)
{
    return unsigned((rows + rowsOfBlock - 1) / rowsOfBlock);
}

/// launch(a type whose value is how many slices the wider of queries and values has).
template<typename Launch>
void withTensorSlices(const GroupedAttentionShape& shape, Launch launch)
{
    const int widest = std::max(shape.querySize, shape.valueSize);
    assert(widest <= widestHead);
    static_assert(widestHead == 4 * sliceWidth);
    switch ((widest + sliceWidth - 1) / sliceWidth) {
    case 1: launch(std::integral_constant<int, 1>()); break;
    case 2: launch(std::integral_constant<int, 2>()); break;
    case 3: launch(std::integral_constant<int, 3>()); break;
    case 4: launch(std::integral_constant<int, 4>()); break;
    }
}

} // namespace

void launchOnTensorCores(const Context& context, const Problem& of, const AttentionForwardPass& with)
{
    const GroupedAttentionShape& shape = of.shape;
    const dim3 blocks(blocksOf(shape.length), unsigned(shape.heads), unsigned(shape.sequences));
    withTensorSlices(shape, [&](auto slices) {
        tensorForward<decltype(slices)::value><<<blocks, threads, 0, context.stream>>>(of, with);
    });
}

void launchOnTensorCores(const Context& context, const Problem& of, const AttentionBackwardPass& with)
{
    const GroupedAttentionShape& shape = of.shape;
    const dim3 queries(blocksOf(shape.length), unsigned(shape.heads), unsigned(shape.sequences));
    const dim3 keys(blocksOf(shape.length), unsigned(shape.keyValueHeads),
                    unsigned(shape.sequences * (of.earlier.count + 1)));
    withTensorSlices(shape, [&](auto slices) {
        tensorQueryGradient<decltype(slices)::value><<<queries, threads, 0, context.stream>>>(of, with);
        tensorKeyValueGradient<decltype(slices)::value><<<keys, threads, 0, context.stream>>>(of, with);
    });
}

} // namespace pipewright::kernels::cuda
