// SPDX-License-Identifier: GPL-3.0-or-later
// Products of small matrices inside a block: a square of 64 x 64 results, of which each of the 256 threads has 4 x 4 in
// registers. Factors pass through shared memory in slices, so a block reads a value from global memory once; sums are
// made in the order of their terms.
#pragma once

#include "kernels/cuda/launch.cuh"

#include <cstdint>

namespace pipewright::kernels::cuda {

constexpr int tile = 64, own = 4, depth = 32; // results per side of the block and of a thread; terms of a slice
constexpr int across = tile / own;            // threads per side
static_assert(across * across == blockSize);

/// The rows and columns of this thread's results in a tile. 16 neighbouring lanes share a row.
__device__ inline int ownRow(int i)
{
    return int(threadIdx.x) / across * own + i;
}
__device__ inline int ownColumn(int j)
{
    return int(threadIdx.x) % across + across * j;
}

/// Whether any of this warp's rows in the tile from line `first` is below `lines`. Warps without one only take part in
/// loads and barriers; shuffles may depend on it, since it is the same for all lanes.
__device__ inline bool warpHasRows(int first, int lines)
{
    constexpr int rows = 32 / across * own;
    return first + int(threadIdx.x) / 32 * rows < lines;
}

/// Calls each(i) for every i below `count`, and below `most`, which is unrolled where all of them are there.
template<int most, typename Each>
__device__ void forFirst(std::int64_t count, Each each)
{
    if (count >= most)
        for (int i = 0; i < most; ++i)
            each(i);
    else
        for (int i = 0; i < int(count); ++i)
            each(i);
}

/// Reduction over the lanes that share a row; all of them get the result.
template<typename Combine>
__device__ float combineRow(float value, Combine combine)
{
    for (int lanes = across / 2; lanes > 0; lanes /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    return value;
}

/// One factor of a product: term t of line l is values[l · line + t · term]. Lines from `lines` on are zeros.
struct Factor {
    const float* values;
    std::int64_t line, term;
    int lines;
};

/// A slice of a factor's terms for the lines of a tile; the pad avoids bank conflicts.
using Strip = float[tile][depth + 1];

/// Coalesced for both layouts of the factor.
__device__ inline void loadStrip(const Factor& from, int firstLine, std::int64_t firstTerm, std::int64_t terms,
                                 Strip& to)
{
    const bool alongTerms = from.term == 1;
    for (int i = int(threadIdx.x); i < tile * depth; i += int(blockSize)) {
        const int line = alongTerms ? i / depth : i % tile, term = alongTerms ? i % depth : i / tile;
        const bool inside = firstLine + line < from.lines && firstTerm + term < terms;
        to[line][term] = inside ? from.values[(firstLine + line) * from.line + (firstTerm + term) * from.term] : 0.0f;
    }
}

/// square[i][j] += the sum over terms of left's line (firstRow + row) times right's line (firstColumn + column), of
/// warps that have rows.
__device__ inline void addProduct(float (&square)[own][own], const Factor& left, int firstRow, const Factor& right,
                                  int firstColumn, std::int64_t terms, Strip* strips)
{
    const bool used = warpHasRows(firstRow, left.lines);
    for (std::int64_t term = 0; term < terms; term += depth) {
        __syncthreads(); // the previous contents of the strips have been read
        loadStrip(left, firstRow, term, terms, strips[0]);
        loadStrip(right, firstColumn, term, terms, strips[1]);
        __syncthreads();
        forFirst<depth>(used ? terms - term : 0, [&](int t) {
            float a[own], b[own];
            for (int i = 0; i < own; ++i) {
                a[i] = strips[0][ownRow(i)][t];
                b[i] = strips[1][ownColumn(i)][t];
            }
            for (int i = 0; i < own; ++i)
                for (int j = 0; j < own; ++j)
                    square[i][j] += a[i] * b[j];
        });
    }
}

inline unsigned tilesOf(std::int64_t lines)
{
    return unsigned((lines + tile - 1) / tile);
}

} // namespace pipewright::kernels::cuda
