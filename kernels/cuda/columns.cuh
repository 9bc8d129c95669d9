// SPDX-License-Identifier: GPL-3.0-or-later
// Sums over the rows of a matrix, by column or by key, in a fixed order. By column: threads sum over interleaved rows,
// then their sums are added. No atomics, and no memory except shared memory.
#pragma once

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace pipewright::kernels::cuda {

// A block has 8 columns, which are 32 bytes of a row, the smallest memory transaction, and 32 threads for each column.
// Narrow blocks give more blocks, since matrices have many rows and few columns.
constexpr unsigned columnsOfBlock = 8, lanesOfColumn = 32;
static_assert(columnsOfBlock * lanesOfColumn == blockSize);

inline unsigned columnBlocks(std::size_t columns)
{
    return static_cast<unsigned>((columns + columnsOfBlock - 1) / columnsOfBlock);
}

/// Calls use(first row, number of rows) for consecutive chunks of rows that fit in the scratch, where a row needs
/// `each` numbers. Usually one call.
template<typename Use>
void forRowsWithScratch(const Context& context, int rows, std::size_t each, Use use)
{
    const int most = int(std::min<std::size_t>(context.rowScratch.size() / each, std::size_t(rows)));
    assert(most > 0 || rows == 0);
    for (int first = 0; first < rows; first += most)
        use(first, std::min(most, rows - first));
}

/// Calls take(column, sum over rows of value(row, column)). Launch columnBlocks(columns) blocks of blockSize threads.
/// Each lane adds every lanesOfColumn-th row, then a warp adds the lanes of one column.
template<typename Sum, typename Value, typename Take>
__device__ void sumColumns(std::int64_t rows, std::int64_t columns, Value value, Take take)
{
    __shared__ Sum partial[lanesOfColumn][columnsOfBlock + 1];
    const unsigned own = threadIdx.x % columnsOfBlock, lane = threadIdx.x / columnsOfBlock;
    const std::int64_t first = std::int64_t(blockIdx.x) * columnsOfBlock;
    Sum sum{};
    if (first + own < columns)
        for (std::int64_t row = lane; row < rows; row += lanesOfColumn)
            sum += value(row, first + own);
    partial[lane][own] = sum;
    __syncthreads();
    sum = warpSum(partial[threadIdx.x % lanesOfColumn][threadIdx.x / lanesOfColumn]);
    const std::int64_t column = first + threadIdx.x / lanesOfColumn;
    if (threadIdx.x % lanesOfColumn == 0 && column < columns)
        take(column, sum);
}

constexpr unsigned columnsOfThread = 4; ///< of sums by key: this many loads are in flight per thread

inline dim3 keyBlocks(std::size_t count, std::size_t columns)
{
    constexpr std::size_t most = blockSize * columnsOfThread;
    return {static_cast<unsigned>(count), static_cast<unsigned>((columns + most - 1) / most), 1};
}

/// sums[key(i)][column] += value(i, column) for all i below `count` whose key is not negative, in the order of i.
/// Launch keyBlocks(count, columns) blocks of blockSize threads: block i handles key(i) only if no earlier index has
/// this key, and returns as soon as it finds one. Each first block of a key reads all O(count) keys.
template<typename Key, typename Value>
__device__ void sumByKey(std::int64_t count, std::int64_t columns, Key key, Value value, float* sums)
{
    constexpr unsigned warps = blockSize / 32;
    __shared__ unsigned found[2][warps]; // double-buffered, so that one barrier per iteration is enough
    const std::int64_t own = key(blockIdx.x),
                       column = std::int64_t(blockIdx.y) * blockSize * columnsOfThread + threadIdx.x;
    if (own < 0)
        return;
    float sum[columnsOfThread] = {};
    for (std::int64_t begin = 0; begin < count; begin += blockSize) {
        const std::int64_t i = begin + threadIdx.x;
        unsigned* const same = found[begin / blockSize % 2];
        const unsigned ofWarp = __ballot_sync(0xffffffffu, i < count && key(i) == own);
        if (threadIdx.x % 32 == 0)
            same[threadIdx.x / 32] = ofWarp;
        __syncthreads();
        for (unsigned warp = 0; warp < warps; ++warp)
            for (unsigned left = same[warp]; left != 0; left &= left - 1) {
                const std::int64_t at = begin + warp * 32 + __ffs(int(left)) - 1;
                if (at < blockIdx.x)
                    return; // uniform over the block
                for (unsigned k = 0; k < columnsOfThread; ++k)
                    if (column + k * blockSize < columns)
                        sum[k] += value(at, column + k * blockSize);
            }
    }
    for (unsigned k = 0; k < columnsOfThread; ++k)
        if (column + k * blockSize < columns)
            sums[own * columns + column + k * blockSize] += sum[k];
}

} // namespace pipewright::kernels::cuda
