// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of bf16 values on tensor cores, tiled and ordered as in attention.cu (Dao, arXiv 2307.08691). A block has
// four warps, each with 16 queries (16 keys for the gradients of keys and values); the other operands pass through
// shared memory, one tile at a time. Scores stay in registers: a product's sums have the layout of the next product's
// left factor. Probabilities and the scores' gradients are rounded to bf16 before they are multiplied; everything else
// is fp32. All sums stay in registers. To make room, left factors are kept in registers for narrow heads only: for
// wider heads a warp reads them again from the cache for every tile, and beyond 128 elements the gradients of keys and
// of values are separate launches.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/tensortiles.cuh"

#include <algorithm>
#include <type_traits>

namespace pipewright::kernels::cuda {

namespace {

/// What registers can hold for heads of this many slices: left factors next to the sums of one result (keepsLeft) or of
/// two (keepsBesideSums), and the sums of two results (hasBothSums).
template<int slices>
constexpr bool keepsLeft = slices <= 2;
template<int slices>
constexpr bool keepsBesideSums = slices == 1;
template<int slices>
constexpr bool hasBothSums = slices <= 2;

/// A block's first query, its key and value head, and its sequence.
struct Queries {
    int first, group, sequence;
};

// The lines of a head's queries and outputs, and of a group's keys and values.

template<typename Element>
__device__ Lines<Element> queriesOf(const Problem& of, In<Element> all, int sequence, int head)
{
    return {all + std::int64_t(sequence) * of.shape.length * of.queryRow() + head * of.shape.querySize, of.queryRow(),
            of.shape.length, of.shape.querySize, of.inWords};
}
template<typename Element>
__device__ Lines<Element> outputsOf(const Problem& of, In<Element> all, int sequence, int head)
{
    return {all + std::int64_t(sequence) * of.shape.length * of.outputRow() + head * of.shape.valueSize, of.outputRow(),
            of.shape.length, of.shape.valueSize, of.inWords};
}
template<typename Element>
__device__ Lines<Element> keysOf(const Problem& of, In<Element> own, int piece, int sequence, int group)
{
    return {of.earlier.keys(piece, own) + std::int64_t(sequence) * of.shape.length * of.keyRow()
                + group * of.shape.querySize,
            of.keyRow(), of.shape.length, of.shape.querySize, of.inWords};
}
template<typename Element>
__device__ Lines<Element> valuesOf(const Problem& of, In<Element> own, int piece, int sequence, int group)
{
    return {of.earlier.values(piece, own) + std::int64_t(sequence) * of.shape.length * of.valueRow()
                + group * of.shape.valueSize,
            of.valueRow(), of.shape.length, of.shape.valueSize, of.inWords};
}

/// Loads every tile of keys and values of which these queries see any, and calls use(piece, first key) for it.
template<int slices, typename Element, typename Use>
__device__ void forKeysAndValues(const Problem& of, In<Element> ownKeys, In<Element> ownValues, Queries queries,
                                 Tile<slices>& keys, Tile<slices>& values, Use use)
{
    constexpr int rows = Tile<slices>::rows;
    const GroupedAttentionShape& shape = of.shape;
    for (int piece = 0; piece <= of.earlier.count; ++piece)
        for (int at = 0; at < shape.length; at += rows) {
            if (of.seesNothing(of.queryPosition(queries.first), rowsOfBlock, of.keyPosition(piece, at), rows))
                continue;
            __syncthreads(); // the previous contents of the tiles have been read
            load(keys, keysOf(of, ownKeys, piece, queries.sequence, queries.group), at);
            load(values, valuesOf(of, ownValues, piece, queries.sequence, queries.group), at);
            __syncthreads();
            use(piece, at);
        }
}

/// Blocks: 64 queries, heads, sequences.
template<int slices, typename Element>
__global__ void tensorForward(Problem of, AttentionForwardPass<Element> with)
{
    using Rows = Tile<slices>;
    __shared__ Rows keys, values;
    const GroupedAttentionShape& shape = of.shape;
    const int block = int(blockIdx.x) * rowsOfBlock, first = block + int(threadIdx.x) / 32 * rowsOfWarp,
              head = int(blockIdx.y), sequence = int(blockIdx.z), group = head / (shape.heads / shape.keyValueHeads);
    const std::int64_t token = std::int64_t(sequence) * shape.length;
    const Left<slices, keepsLeft<slices>, Element> queries(queriesOf(of, with.query, sequence, head), first);
    const float slope = of.slope(head);
    float sums[Rows::width / 8][4] = {}, largest[2], weight[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        largest[half] = with.sinks ? with.sinks[head] : -INFINITY;
        weight[half] = with.sinks ? 1.0f : 0.0f; // the sink takes part without a key
    }
    forKeysAndValues(of, with.key, with.value, {block, group, sequence}, keys, values, [&](int piece, int at) {
        float scores[Rows::groups][4] = {};
        multiplyByRows(scores, queries, keys);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int position = of.queryPosition(first + laneRow() + half * 8);
            float most = -INFINITY;
#pragma unroll
            for (int n = 0; n < Rows::groups; ++n)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const int k = at + n * 8 + laneColumn() + j;
                    float& score = scores[n][2 * half + j];
                    const bool seen = k < shape.length && of.sees(position, of.keyPosition(piece, k));
                    score = seen ? of.capped(shape.scale * score) + of.bias(slope, position, of.keyPosition(piece, k))
                                 : -INFINITY;
                    most = fmaxf(most, score);
                }
            most = fmaxf(largest[half], combineLanes(most, [](float a, float b) { return fmaxf(a, b); }));
            const float shrink = largest[half] == -INFINITY ? 0.0f : expf(largest[half] - most);
            float sum = 0;
#pragma unroll
            for (int n = 0; n < Rows::groups; ++n)
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
        const Out<Element> row = with.output + ((token + query) * of.outputRow() + head * shape.valueSize);
        forOwnElements(sums, half, shape.valueSize, [&](int column, float sum) { row[column] = sum / weight[half]; });
        if (laneColumn() == 0)
            with.logSums[(std::int64_t(sequence) * shape.heads + head) * shape.length + query] =
                largest[half] + logf(weight[half]);
    }
}

/// Blocks: 64 queries, heads, sequences.
template<int slices, typename Element>
__global__ void tensorQueryGradient(Problem of, AttentionBackwardPass<Element> with)
{
    using Rows = Tile<slices>;
    __shared__ Rows keys, values;
    const GroupedAttentionShape& shape = of.shape;
    const int block = int(blockIdx.x) * rowsOfBlock, first = block + int(threadIdx.x) / 32 * rowsOfWarp,
              head = int(blockIdx.y), sequence = int(blockIdx.z), group = head / (shape.heads / shape.keyValueHeads);
    const std::int64_t token = std::int64_t(sequence) * shape.length,
                       numbers = (std::int64_t(sequence) * shape.heads + head) * shape.length;
    const Left<slices, keepsLeft<slices>, Element> queries(queriesOf(of, with.query, sequence, head), first),
        grads(outputsOf(of, with.outputGrad, sequence, head), first);
    const float slope = of.slope(head);
    float logSum[2] = {}, dot[2] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half)
        if (const int query = first + laneRow() + half * 8; query < shape.length) {
            logSum[half] = with.logSums[numbers + query];
            dot[half] = with.dots[numbers + query];
        }
    float sums[Rows::width / 8][4] = {};
    forKeysAndValues(of, with.key, with.value, {block, group, sequence}, keys, values, [&](int piece, int at) {
        float scores[Rows::groups][4] = {}, ofScores[Rows::groups][4] = {};
        multiplyByRows(scores, queries, keys);
        multiplyByRows(ofScores, grads, values);
#pragma unroll
        for (int n = 0; n < Rows::groups; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int q = first + laneRow() + i / 2 * 8, k = at + n * 8 + laneColumn() + i % 2;
                const bool seen =
                    q < shape.length && k < shape.length && of.sees(of.queryPosition(q), of.keyPosition(piece, k));
                scoreGradient(
                    of,
                    {seen, logSum[i / 2], dot[i / 2], of.bias(slope, of.queryPosition(q), of.keyPosition(piece, k))},
                    scores[n][i], ofScores[n][i]);
            }
        addWeighted(sums, ofScores, keys);
    });
#pragma unroll
    for (int half = 0; half < 2; ++half)
        if (const int query = first + laneRow() + half * 8; query < shape.length) {
            const Out<Element> row = with.queryGrad + ((token + query) * of.queryGradRow + head * shape.querySize);
            forOwnElements(sums, half, shape.querySize, [&](int column, float sum) { row[column] = sum; });
        }
}

/// Destination of the gradients of a row of a piece's keys or values, and the sums from later pieces (`owed`), of which
/// there are none in the last piece.
template<typename Element>
struct GradientRow {
    Out<Element> own;
    float* owed;
    bool isOwn, isLast;

    __device__ void take(int column, float sum) const
    {
        const float all = isLast ? sum : sum + owed[column];
        if (isOwn)
            own[column] = all;
        else
            owed[column] = all;
    }
};

/// The gradients of keys, of values, or of both. Blocks: 64 keys, key and value heads, sequences times the pieces up to
/// the current one. `owed` as in attention.cu.
template<int slices, bool ofKeys, bool ofValues, typename Element>
__global__ void tensorKeyValueGradient(Problem of, AttentionBackwardPass<Element> with)
{
    using Rows = Tile<slices>;
    __shared__ Rows queries, grads;
    __shared__ float logSums[Rows::rows], dots[Rows::rows];
    const GroupedAttentionShape& shape = of.shape;
    const int block = int(blockIdx.x) * rowsOfBlock, first = block + int(threadIdx.x) / 32 * rowsOfWarp,
              group = int(blockIdx.y), sequence = int(blockIdx.z) % shape.sequences,
              piece = int(blockIdx.z) / shape.sequences, heads = shape.heads / shape.keyValueHeads;
    const std::int64_t token = std::int64_t(sequence) * shape.length;
    const Left<slices, keepsBesideSums<slices>, Element> keys(keysOf(of, with.key, piece, sequence, group), first),
        values(valuesOf(of, with.value, piece, sequence, group), first);
    float keySums[ofKeys ? Rows::width / 8 : 1][4] = {}, valueSums[ofValues ? Rows::width / 8 : 1][4] = {};
    for (int head = group * heads; head < (group + 1) * heads; ++head) {
        const std::int64_t numbers = (std::int64_t(sequence) * shape.heads + head) * shape.length;
        const float slope = of.slope(head);
        for (int at = 0; at < shape.length; at += Rows::rows) {
            if (of.seesNothing(of.queryPosition(at), Rows::rows, of.keyPosition(piece, block), rowsOfBlock))
                continue;
            __syncthreads(); // the previous contents of the tiles have been read
            load(queries, queriesOf(of, with.query, sequence, head), at);
            load(grads, outputsOf(of, with.outputGrad, sequence, head), at);
            if (const int i = int(threadIdx.x); i < Rows::rows) {
                logSums[i] = at + i < shape.length ? with.logSums[numbers + at + i] : 0.0f;
                dots[i] = at + i < shape.length ? with.dots[numbers + at + i] : 0.0f;
            }
            __syncthreads();
            float scores[Rows::groups][4] = {}, ofScores[Rows::groups][4] = {};
            multiplyByRows(scores, keys, queries);
            if constexpr (ofKeys)
                multiplyByRows(ofScores, values, grads);
#pragma unroll
            for (int n = 0; n < Rows::groups; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int row = n * 8 + laneColumn() + i % 2, q = at + row, k = first + laneRow() + i / 2 * 8;
                    const bool seen =
                        q < shape.length && k < shape.length && of.sees(of.queryPosition(q), of.keyPosition(piece, k));
                    scoreGradient(
                        of,
                        {seen, logSums[row], dots[row], of.bias(slope, of.queryPosition(q), of.keyPosition(piece, k))},
                        scores[n][i], ofScores[n][i]);
                }
            if constexpr (ofValues)
                addWeighted(valueSums, scores, grads);
            if constexpr (ofKeys)
                addWeighted(keySums, ofScores, queries);
        }
    }
    const bool isOwn = piece == of.earlier.count, isLast = of.earlier.count == shape.pieces - 1;
    const std::int64_t keyCount = std::int64_t(shape.sequences) * shape.length * of.keyRow(),
                       valueCount = std::int64_t(shape.sequences) * shape.length * of.valueRow();
    const auto owed = [&](std::int64_t at) { // null where sequences are not in pieces
        return with.owed ? with.owed + piece * (keyCount + valueCount) + at : nullptr;
    };
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int at = first + laneRow() + half * 8;
        if (at >= shape.length)
            continue;
        if constexpr (ofKeys) {
            const GradientRow<Element> to{with.keyGrad + ((token + at) * of.keyGradRow + group * shape.querySize),
                                          owed((token + at) * of.keyRow() + group * shape.querySize), isOwn, isLast};
            forOwnElements(keySums, half, shape.querySize, [&](int column, float sum) { to.take(column, sum); });
        }
        if constexpr (ofValues) {
            const GradientRow<Element> to{with.valueGrad + ((token + at) * of.valueGradRow + group * shape.valueSize),
                                          owed(keyCount + (token + at) * of.valueRow() + group * shape.valueSize),
                                          isOwn, isLast};
            forOwnElements(valueSums, half, shape.valueSize, [&](int column, float sum) { to.take(column, sum); });
        }
    }
}

unsigned blocksOf(int rows)
{
    return unsigned((rows + rowsOfBlock - 1) / rowsOfBlock);
}

/// Calls launch(an integral constant: the number of slices of the wider of queries and values).
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

/// Sets whether two adjacent elements, the first at an even index, may be read as one word in all operands.
template<typename Element>
Problem inWords(Problem of, std::initializer_list<In<Element>> operands)
{
    const GroupedAttentionShape& shape = of.shape;
    const auto isEven = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 4 == 0; };
    of.inWords = shape.querySize % 2 == 0 && shape.valueSize % 2 == 0 && of.earlier.key % 2 == 0
                 && of.earlier.value % 2 == 0
                 && std::all_of(of.earlier.saved, of.earlier.saved + of.earlier.count, isEven)
                 && std::all_of(operands.begin(), operands.end(), [&](In<Element> each) { return isEven(each.at); });
    return of;
}

} // namespace

template<typename Element>
void launchOnTensorCores(const Context& context, const Problem& problem, const AttentionForwardPass<Element>& with)
{
    const GroupedAttentionShape& shape = problem.shape;
    const Problem of = inWords(problem, {with.query, with.key, with.value});
    const dim3 blocks(blocksOf(shape.length), unsigned(shape.heads), unsigned(shape.sequences));
    withTensorSlices(shape, [&](auto slices) {
        tensorForward<decltype(slices)::value><<<blocks, threads, 0, context.stream>>>(of, with);
    });
}

template<typename Element>
void launchOnTensorCores(const Context& context, const Problem& problem, const AttentionBackwardPass<Element>& with)
{
    const GroupedAttentionShape& shape = problem.shape;
    const Problem of = inWords(problem, {with.query, with.key, with.value, with.outputGrad});
    const dim3 queries(blocksOf(shape.length), unsigned(shape.heads), unsigned(shape.sequences));
    const dim3 keys(blocksOf(shape.length), unsigned(shape.keyValueHeads),
                    unsigned(shape.sequences * (of.earlier.count + 1)));
    withTensorSlices(shape, [&](auto slices) {
        constexpr int width = decltype(slices)::value;
        tensorQueryGradient<width><<<queries, threads, 0, context.stream>>>(of, with);
        if constexpr (hasBothSums<width>) {
            tensorKeyValueGradient<width, true, true><<<keys, threads, 0, context.stream>>>(of, with);
        } else {
            tensorKeyValueGradient<width, true, false><<<keys, threads, 0, context.stream>>>(of, with);
            tensorKeyValueGradient<width, false, true><<<keys, threads, 0, context.stream>>>(of, with);
        }
    });
}

template void launchOnTensorCores(const Context&, const Problem&, const AttentionForwardPass<float>&);
template void launchOnTensorCores(const Context&, const Problem&, const AttentionForwardPass<Bf16>&);
template void launchOnTensorCores(const Context&, const Problem&, const AttentionBackwardPass<float>&);
template void launchOnTensorCores(const Context&, const Problem&, const AttentionBackwardPass<Bf16>&);

} // namespace pipewright::kernels::cuda
