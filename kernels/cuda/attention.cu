// SPDX-License-Identifier: GPL-3.0-or-later
// Attention in tiles of 64 queries x 64 keys: the matrix of scores is never stored. The forward pass keeps a running
// maximum and sum per query and saves the log-sum. The backward pass recomputes a tile's probabilities from it, once
// for the queries' gradients and once for those of keys and values, so that each output is written by one block and
// sums have a fixed order (Dao et al., arXiv 2205.14135, algorithms 1 and 4). The kernels here use fp32 without tensor
// cores; bf16 uses cuDNN if it is enabled and supports the shape, else tensor cores. The pieces of a sequence are
// processed one after another, oldest first; their addresses are kernel arguments, so captured launches keep them.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/tiles.cuh"

#include <algorithm>
#include <cassert>

namespace pipewright::kernels::cuda {

namespace {

constexpr int mostSlices = widestHead / tile; ///< slices of `tile` elements of a head

/// Shared memory of a block, the same for all three kernels.
struct Shared {
    Strip strips[2];
    float square[tile][tile + 1];
};

/// sums[slice][i][j] += sum over lines of square[row][line] · rows[line][slice · tile + column], in warps that are
/// `used`. Rows are loaded a slice of columns at a time, in place of the strips. The square may be rewritten after the
/// next addProduct(), which has barriers.
template<int slices>
__device__ void addWeighted(float (&sums)[slices][own][own], bool used, Shared& shared, const float* rows,
                            std::int64_t row, int lines, int columns)
{
    float* const slice = &shared.strips[0][0][0];
    static_assert(sizeof shared.strips >= tile * tile * sizeof(float));
#pragma unroll // or the sums leave the registers, as in what follows
    for (int s = 0; s < slices; ++s) {
        __syncthreads(); // the square is written, and the strips have been read
        for (int i = int(threadIdx.x); i < tile * tile; i += int(blockSize)) {
            const int line = i / tile, column = s * tile + i % tile;
            slice[i] = line < lines && column < columns ? rows[line * row + column] : 0.0f;
        }
        __syncthreads();
        forFirst<tile>(used ? lines : 0, [&](int line) {
            float a[own], b[own];
            for (int i = 0; i < own; ++i) {
                a[i] = shared.square[ownRow(i)][line];
                b[i] = slice[line * tile + ownColumn(i)];
            }
            for (int i = 0; i < own; ++i)
                for (int j = 0; j < own; ++j)
                    sums[s][i][j] += a[i] * b[j];
        });
    }
}

/// Calls take(column, value) for all results of a thread's row i.
template<int slices, typename Take>
__device__ void forOwnColumns(const float (&sums)[slices][own][own], int i, int columns, Take take)
{
#pragma unroll
    for (int s = 0; s < slices; ++s)
        for (int j = 0; j < own; ++j)
            if (const int column = s * tile + ownColumn(j); column < columns)
                take(column, sums[s][i][j]);
}

/// Blocks: tiles of queries, heads, sequences.
template<int slices>
__global__ void forward(Problem of, const float* query, const float* key, const float* value, const float* sinks,
                        float* logSums, float* output)
{
    __shared__ Shared shared;
    const GroupedAttentionShape& shape = of.shape;
    const int first = int(blockIdx.x) * tile, head = int(blockIdx.y), sequence = int(blockIdx.z),
              group = head / (shape.heads / shape.keyValueHeads);
    const std::int64_t token = std::int64_t(sequence) * shape.length;
    const Factor queries{query + token * of.queryRow() + head * shape.querySize, of.queryRow(), 1, shape.length};
    const bool used = warpHasRows(first, shape.length);
    const float slope = of.slope(head);
    float sums[slices][own][own] = {}, largest[own], weight[own];
#pragma unroll
    for (int i = 0; i < own; ++i) {
        largest[i] = sinks ? sinks[head] : -INFINITY;
        weight[i] = sinks ? 1.0f : 0.0f; // the sink takes part without a key
    }
    for (int piece = 0; piece <= of.earlier.count; ++piece)
        for (int at = 0; at < shape.length; at += tile) {
            if (of.seesNothing(of.queryPosition(first), tile, of.keyPosition(piece, at), tile))
                continue;
            float scores[own][own] = {};
            addProduct(scores, queries, first,
                       {of.earlier.keys(piece, In<float>{key}).at + token * of.keyRow() + group * shape.querySize,
                        of.keyRow(), 1, shape.length},
                       at, shape.querySize, shared.strips);
            if (used) {
#pragma unroll
                for (int i = 0; i < own; ++i) {
                    const int position = of.queryPosition(first + ownRow(i));
                    float most = -INFINITY;
                    for (int j = 0; j < own; ++j) {
                        const int k = at + ownColumn(j);
                        const bool seen = k < shape.length && of.sees(position, of.keyPosition(piece, k));
                        scores[i][j] = seen ? of.capped(shape.scale * scores[i][j])
                                                  + of.bias(slope, position, of.keyPosition(piece, k))
                                            : -INFINITY;
                        most = fmaxf(most, scores[i][j]);
                    }
                    most = fmaxf(largest[i], combineRow(most, [](float a, float b) { return fmaxf(a, b); }));
                    const float shrink = largest[i] == -INFINITY ? 0.0f : expf(largest[i] - most);
                    float sum = 0;
                    for (int j = 0; j < own; ++j) {
                        const float share = scores[i][j] == -INFINITY ? 0.0f : expf(scores[i][j] - most);
                        shared.square[ownRow(i)][ownColumn(j)] = share;
                        sum += share;
                    }
                    weight[i] = weight[i] * shrink + combineRow(sum, [](float a, float b) { return a + b; });
                    largest[i] = most;
                    for (int s = 0; s < slices; ++s)
                        for (int j = 0; j < own; ++j)
                            sums[s][i][j] *= shrink;
                }
            }
            addWeighted(sums, used, shared,
                        of.earlier.values(piece, In<float>{value}).at + (token + at) * of.valueRow()
                            + group * shape.valueSize,
                        of.valueRow(), shape.length - at, shape.valueSize);
        }
#pragma unroll
    for (int i = 0; i < own; ++i) {
        const int at = first + ownRow(i);
        if (at >= shape.length)
            continue;
        float* const row = output + (token + at) * of.outputRow() + head * shape.valueSize;
        forOwnColumns(sums, i, shape.valueSize, [&](int column, float sum) { row[column] = sum / weight[i]; });
        if (ownColumn(0) == 0)
            logSums[(std::int64_t(sequence) * shape.heads + head) * shape.length + at] = largest[i] + logf(weight[i]);
    }
}

/// outputGrad · output of every query and head, a warp each.
template<typename Element>
__global__ void fillDots(Problem of, In<Element> output, In<Element> outputGrad, float* dots)
{
    const GroupedAttentionShape& shape = of.shape;
    const std::int64_t index = std::int64_t(blockIdx.x) * (blockSize / 32) + threadIdx.x / 32;
    if (index >= std::int64_t(shape.sequences) * shape.length * shape.heads)
        return;
    const std::int64_t token = index / shape.heads, at = index * shape.valueSize;
    float sum = 0;
    for (int i = int(threadIdx.x % 32); i < shape.valueSize; i += 32)
        sum += outputGrad[at + i] * output[at + i];
    sum = warpSum(sum);
    if (threadIdx.x % 32 == 0)
        dots[(token / shape.length * shape.heads + index % shape.heads) * shape.length + token % shape.length] = sum;
}

/// Subtracts the sum over queries of the sink's probability times `dots`. One block per head.
template<typename Element>
__global__ void sinkGradient(Problem of, In<Element> sinks, const float* logSums, const float* dots, float* grad)
{
    const GroupedAttentionShape& shape = of.shape;
    const int head = int(blockIdx.x);
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < std::int64_t(shape.sequences) * shape.length; i += blockDim.x) {
        const std::int64_t at = (i / shape.length * shape.heads + head) * shape.length + i % shape.length;
        sum += expf(sinks[head] - logSums[at]) * dots[at];
    }
    sum = blockSum(sum);
    if (threadIdx.x == 0)
        grad[head] -= sum;
}

/// `logSums` and `dots` are of the queries of one head.
__device__ Numbers numbersOf(const Problem& of, float slope, int q, int piece, int k, const float* logSums,
                             const float* dots)
{
    const int length = of.shape.length;
    if (q >= length || k >= length || !of.sees(of.queryPosition(q), of.keyPosition(piece, k)))
        return {};
    return {true, logSums[q], dots[q], of.bias(slope, of.queryPosition(q), of.keyPosition(piece, k))};
}

template<typename NumbersOf>
__device__ void scoreGradients(const Problem& of, float (&scores)[own][own], float (&grads)[own][own],
                               NumbersOf numbersOf)
{
    for (int i = 0; i < own; ++i)
        for (int j = 0; j < own; ++j)
            scoreGradient(of, numbersOf(i, j), scores[i][j], grads[i][j]);
}

/// Blocks: tiles of queries, heads, sequences.
template<int slices>
__global__ void queryGradient(Problem of, const float* query, const float* key, const float* value,
                              const float* logSums, const float* outputGrad, const float* dots, float* grad)
{
    __shared__ Shared shared;
    const GroupedAttentionShape& shape = of.shape;
    const int first = int(blockIdx.x) * tile, head = int(blockIdx.y), sequence = int(blockIdx.z),
              group = head / (shape.heads / shape.keyValueHeads);
    const std::int64_t token = std::int64_t(sequence) * shape.length,
                       numbers = (std::int64_t(sequence) * shape.heads + head) * shape.length;
    const Factor queries{query + token * of.queryRow() + head * shape.querySize, of.queryRow(), 1, shape.length};
    const Factor grads{outputGrad + token * of.outputRow() + head * shape.valueSize, of.outputRow(), 1, shape.length};
    const float slope = of.slope(head);
    const bool used = warpHasRows(first, shape.length);
    float sums[slices][own][own] = {};
    for (int piece = 0; piece <= of.earlier.count; ++piece)
        for (int at = 0; at < shape.length; at += tile) {
            if (of.seesNothing(of.queryPosition(first), tile, of.keyPosition(piece, at), tile))
                continue;
            const float* const keys =
                of.earlier.keys(piece, In<float>{key}).at + token * of.keyRow() + group * shape.querySize;
            const float* const values =
                of.earlier.values(piece, In<float>{value}).at + token * of.valueRow() + group * shape.valueSize;
            float scores[own][own] = {}, ofScores[own][own] = {};
            addProduct(scores, queries, first, {keys, of.keyRow(), 1, shape.length}, at, shape.querySize,
                       shared.strips);
            addProduct(ofScores, grads, first, {values, of.valueRow(), 1, shape.length}, at, shape.valueSize,
                       shared.strips);
            scoreGradients(of, scores, ofScores, [&](int i, int j) -> Numbers {
                const int q = first + ownRow(i), k = at + ownColumn(j);
                return numbersOf(of, slope, q, piece, k, logSums + numbers, dots + numbers);
            });
            for (int i = 0; i < own; ++i)
                for (int j = 0; j < own; ++j)
                    shared.square[ownRow(i)][ownColumn(j)] = ofScores[i][j];
            addWeighted(sums, used, shared, keys + std::int64_t(at) * of.keyRow(), of.keyRow(), shape.length - at,
                        shape.querySize);
        }
    for (int i = 0; i < own; ++i)
        if (const int at = first + ownRow(i); at < shape.length) {
            float* const row = grad + (token + at) * of.queryGradRow + head * shape.querySize;
            forOwnColumns(sums, i, shape.querySize, [&](int column, float sum) { row[column] = sum; });
        }
}

/// Blocks: tiles of keys, key and value heads, sequences times the pieces up to the own one. Sums over all queries of
/// this piece, of all heads that share the keys, in order. Gradients for the keys and values of earlier pieces
/// accumulate in `owed`: the last piece starts the sums, the others add to them, and each piece includes the sums for
/// its own keys and values.
template<int slices>
__global__ void keyValueGradient(Problem of, const float* query, const float* key, const float* value,
                                 const float* logSums, const float* outputGrad, const float* dots, float* keyGrad,
                                 float* valueGrad, float* owed)
{
    __shared__ Shared shared;
    const GroupedAttentionShape& shape = of.shape;
    const int first = int(blockIdx.x) * tile, group = int(blockIdx.y), sequence = int(blockIdx.z) % shape.sequences,
              piece = int(blockIdx.z) / shape.sequences, heads = shape.heads / shape.keyValueHeads;
    const std::int64_t token = std::int64_t(sequence) * shape.length;
    const Factor keys{of.earlier.keys(piece, In<float>{key}).at + token * of.keyRow() + group * shape.querySize,
                      of.keyRow(), 1, shape.length};
    const Factor values{of.earlier.values(piece, In<float>{value}).at + token * of.valueRow() + group * shape.valueSize,
                        of.valueRow(), 1, shape.length};
    const bool used = warpHasRows(first, shape.length);
    float keySums[slices][own][own] = {}, valueSums[slices][own][own] = {};
    for (int head = group * heads; head < (group + 1) * heads; ++head) {
        const float* const queries = query + token * of.queryRow() + head * shape.querySize;
        const float* const grads = outputGrad + token * of.outputRow() + head * shape.valueSize;
        const std::int64_t numbers = (std::int64_t(sequence) * shape.heads + head) * shape.length;
        const float slope = of.slope(head);
        for (int at = 0; at < shape.length; at += tile) {
            if (of.seesNothing(of.queryPosition(at), tile, of.keyPosition(piece, first), tile))
                continue;
            float scores[own][own] = {}, ofScores[own][own] = {};
            addProduct(scores, keys, first, {queries, of.queryRow(), 1, shape.length}, at, shape.querySize,
                       shared.strips);
            addProduct(ofScores, values, first, {grads, of.outputRow(), 1, shape.length}, at, shape.valueSize,
                       shared.strips);
            scoreGradients(of, scores, ofScores, [&](int i, int j) -> Numbers {
                const int k = first + ownRow(i), q = at + ownColumn(j);
                return numbersOf(of, slope, q, piece, k, logSums + numbers, dots + numbers);
            });
            for (int i = 0; i < own; ++i)
                for (int j = 0; j < own; ++j)
                    shared.square[ownRow(i)][ownColumn(j)] = scores[i][j];
            addWeighted(valueSums, used, shared, grads + std::int64_t(at) * of.outputRow(), of.outputRow(),
                        shape.length - at, shape.valueSize);
            __syncthreads(); // all threads have read the probabilities
            for (int i = 0; i < own; ++i)
                for (int j = 0; j < own; ++j)
                    shared.square[ownRow(i)][ownColumn(j)] = ofScores[i][j];
            addWeighted(keySums, used, shared, queries + std::int64_t(at) * of.queryRow(), of.queryRow(),
                        shape.length - at, shape.querySize);
        }
    }
    const bool isOwn = piece == of.earlier.count, isLast = of.earlier.count == shape.pieces - 1;
    const std::int64_t keyCount = std::int64_t(shape.sequences) * shape.length * of.keyRow(),
                       valueCount = std::int64_t(shape.sequences) * shape.length * of.valueRow();
    const bool isOwed = !(isOwn && isLast); // no later piece contributes to the last piece's own
    float* const ofPiece = isOwed ? owed + piece * (keyCount + valueCount) : nullptr;
#pragma unroll
    for (int i = 0; i < own; ++i) {
        const int at = first + ownRow(i);
        if (at >= shape.length)
            continue;
        const std::int64_t keyAt = (token + at) * of.keyRow() + group * shape.querySize,
                           valueAt = (token + at) * of.valueRow() + group * shape.valueSize;
        float* const keyOwed = isOwed ? ofPiece + keyAt : nullptr;
        float* const valueOwed = isOwed ? ofPiece + keyCount + valueAt : nullptr;
        float* const keyTo = isOwn ? keyGrad + (token + at) * of.keyGradRow + group * shape.querySize : keyOwed;
        float* const valueTo = isOwn ? valueGrad + (token + at) * of.valueGradRow + group * shape.valueSize : valueOwed;
        forOwnColumns(keySums, i, shape.querySize,
                      [&](int column, float sum) { keyTo[column] = isLast ? sum : sum + keyOwed[column]; });
        forOwnColumns(valueSums, i, shape.valueSize,
                      [&](int column, float sum) { valueTo[column] = isLast ? sum : sum + valueOwed[column]; });
    }
}

/// Calls launch(an integral constant: the number of slices of the wider of queries and values).
template<typename Launch>
void withSlices(const GroupedAttentionShape& shape, Launch launch)
{
    const int widest = std::max(shape.querySize, shape.valueSize);
    assert(widest <= widestHead);
    static_assert(mostSlices == 4);
    switch ((widest + tile - 1) / tile) {
    case 1: launch(std::integral_constant<int, 1>()); break;
    case 2: launch(std::integral_constant<int, 2>()); break;
    case 3: launch(std::integral_constant<int, 3>()); break;
    case 4: launch(std::integral_constant<int, 4>()); break;
    }
}

/// Issues the pass with cuDNN, which needs all operands in bf16. False: it does not support it.
bool isFused(const Context& context, const Problem& of, const AttentionForwardPass<Bf16>& with)
{
    return context.fused
           && context.fused->run(fusedPass(of.shape), of.shape, bool(with.sinks),
                                 {with.query.at, with.key.at, with.value.at, with.output.at, with.logSums});
}
bool isFused(const Context& context, const Problem& of, const AttentionBackwardPass<Bf16>& with)
{
    return context.fused
           && context.fused->run(fusedPass(of.shape, of.queryGradRow, of.keyGradRow, of.valueGradRow), of.shape,
                                 bool(with.sinks),
                                 {with.query.at, with.key.at, with.value.at, with.output.at, with.logSums,
                                  with.outputGrad.at, with.queryGrad.at, with.keyGrad.at, with.valueGrad.at});
}

template<typename Element>
void launchForward(const Context& context, const Problem& of, bool bf16, const AttentionForwardPass<Element>& with)
{
    const GroupedAttentionShape& shape = of.shape;
    if (shape.tokens() == 0)
        return;
    if constexpr (std::is_same_v<Element, Bf16>)
        if (isFused(context, of, with))
            return;
    if (bf16) {
        launchOnTensorCores(context, of, with);
        return;
    }
    if constexpr (std::is_same_v<Element, float>) {
        const dim3 blocks(tilesOf(shape.length), unsigned(shape.heads), unsigned(shape.sequences));
        withSlices(shape, [&](auto slices) {
            forward<decltype(slices)::value><<<blocks, blockSize, 0, context.stream>>>(
                of, with.query.at, with.key.at, with.value.at, with.sinks.at, with.logSums, with.output.at);
        });
    }
}

template<typename Element>
void launchBackward(const Context& context, const Problem& of, bool bf16, const AttentionBackwardPass<Element>& with)
{
    const GroupedAttentionShape& shape = of.shape;
    if (shape.tokens() == 0)
        return;
    if constexpr (std::is_same_v<Element, Bf16>)
        if (isFused(context, of, with))
            return;
    constexpr std::size_t warps = blockSize / 32;
    const auto each = unsigned((shape.numbers() + warps - 1) / warps);
    fillDots<<<each, blockSize, 0, context.stream>>>(of, with.output, with.outputGrad, with.dots);
    if (with.sinks)
        sinkGradient<<<unsigned(shape.heads), threadsForRow(std::size_t(shape.sequences) * std::size_t(shape.length)),
                       0, context.stream>>>(of, with.sinks, with.logSums, with.dots, with.sinkGrad);
    if (bf16) {
        launchOnTensorCores(context, of, with);
        return;
    }
    if constexpr (std::is_same_v<Element, float>) {
        const dim3 queries(tilesOf(shape.length), unsigned(shape.heads), unsigned(shape.sequences));
        const dim3 keys(tilesOf(shape.length), unsigned(shape.keyValueHeads),
                        unsigned(shape.sequences * (of.earlier.count + 1)));
        withSlices(shape, [&](auto slices) {
            queryGradient<decltype(slices)::value>
                <<<queries, blockSize, 0, context.stream>>>(of, with.query.at, with.key.at, with.value.at, with.logSums,
                                                            with.outputGrad.at, with.dots, with.queryGrad.at);
            keyValueGradient<decltype(slices)::value><<<keys, blockSize, 0, context.stream>>>(
                of, with.query.at, with.key.at, with.value.at, with.logSums, with.outputGrad.at, with.dots,
                with.keyGrad.at, with.valueGrad.at, with.owed);
        });
    }
}

} // namespace

// Operands stored in bf16 are multiplied as bf16.

void run(const Context& context, const AttentionForward& call)
{
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        launchForward<Element>(context, problem(grouped(call.shape), call.earlier), call.bf16 || context.stored != 0,
                               {in<Element>(call.query),
                                in<Element>(call.key),
                                in<Element>(call.value),
                                {},
                                call.saved.data(),
                                out<Element>(call.output)});
    });
}

void run(const Context& context, const AttentionInputGrad& call)
{
    assert(call.sequenceGradient.size() == call.shape.sequenceGradient());
    Problem of = problem(grouped(call.shape), call.earlier);
    const int hidden = call.shape.hidden();
    of.queryGradRow = of.keyGradRow = of.valueGradRow = 3 * hidden;
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        const Out<Element> grad = out<Element>(call.queryKeyValueGrad);
        launchBackward<Element>(context, of, call.bf16 || context.stored != 0,
                                {in<Element>(call.query),
                                 in<Element>(call.key),
                                 in<Element>(call.value),
                                 {},
                                 call.saved.data(),
                                 in<Element>(call.output),
                                 in<Element>(call.outputGrad),
                                 grad,
                                 grad + hidden,
                                 grad + 2 * hidden,
                                 call.scratch.data(),
                                 call.sequenceGradient.data(),
                                 nullptr});
    });
}

void run(const Context& context, const GroupedAttentionForward& call)
{
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        launchForward<Element>(context, problem(call.shape, call.earlier), call.bf16 || context.stored != 0,
                               {in<Element>(call.query), in<Element>(call.key), in<Element>(call.value),
                                call.sinks.empty() ? In<Element>() : in<Element>(call.sinks), call.logSums.data(),
                                out<Element>(call.output)});
    });
}

void run(const Context& context, const GroupedAttentionInputGrad& call)
{
    assert(call.sequenceGradient.size() == call.shape.sequenceGradient());
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        launchBackward<Element>(context, problem(call.shape, call.earlier), call.bf16 || context.stored != 0,
                                {in<Element>(call.query), in<Element>(call.key), in<Element>(call.value),
                                 call.sinks.empty() ? In<Element>() : in<Element>(call.sinks), call.logSums.data(),
                                 in<Element>(call.output), in<Element>(call.outputGrad), out<Element>(call.queryGrad),
                                 out<Element>(call.keyGrad), out<Element>(call.valueGrad), call.dots.data(),
                                 call.sequenceGradient.data(), call.sinkGrad.data()});
    });
}

} // namespace pipewright::kernels::cuda
