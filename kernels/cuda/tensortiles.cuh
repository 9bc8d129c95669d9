// SPDX-License-Identifier: GPL-3.0-or-later
// Products of bf16 matrices by the four warps of a block, built on tensorcores.cuh: the left factor has 16 rows per
// warp, kept in registers or read on demand; the right factor is shared by all warps, one tile at a time.
#pragma once

#include "kernels/cuda/stored.cuh"
#include "kernels/cuda/tensorcores.cuh"

#include <cstdint>

namespace pipewright::kernels::cuda {

constexpr int warps = 4, threads = 32 * warps, rowsOfWarp = 16, rowsOfBlock = warps * rowsOfWarp;
constexpr int sliceWidth = 64; ///< heads are padded to a multiple of it

/// A tile in shared memory: rows of `width` elements, two in a word. The pad of four words avoids bank conflicts.
template<int slices>
struct Tile {
    static constexpr int width = slices * sliceWidth, words = width / 2 + 4,
                         rows = slices == 1 ? 64 : 32; ///< as many as fit in shared memory and registers
    static constexpr int groups = rows / 8;            ///< of 8 rows, the width of one product of a warp
    std::uint32_t pairs[rows][words];
};

/// Two elements of a row as bf16, starting at an even column; zeros from `columns` on. Reads both as one word if
/// `inWords`.
__device__ inline std::uint32_t pairOf(In<float> row, int column, int columns, bool)
{
    return bf16Pair(column < columns ? row[column] : 0.0f, column + 1 < columns ? row[column + 1] : 0.0f);
}
__device__ inline std::uint32_t pairOf(In<Bf16> row, int column, int columns, bool inWords)
{
    if (inWords && column + 1 < columns)
        return *reinterpret_cast<const std::uint32_t*>(row.at + column);
    const std::uint32_t low = column < columns ? row.at[column] : 0,
                        high = column + 1 < columns ? row.at[column + 1] : 0;
    return low | high << 16;
}

/// Lines of a matrix. Lines from `lines` on, and elements from `columns` on, are zeros.
template<typename Element>
struct Lines {
    In<Element> from;
    std::int64_t row;
    int lines, columns;
    bool inWords;

    __device__ std::uint32_t pair(int line, int column) const
    {
        return pairOf(from + line * row, column, line < lines ? columns : 0, inWords);
    }
};

template<int slices, typename Element>
__device__ void load(Tile<slices>& to, const Lines<Element>& from, int first)
{
    using Of = Tile<slices>;
    for (int i = int(threadIdx.x); i < Of::rows * (Of::width / 2); i += threads) {
        const int line = i / (Of::width / 2), pair = i % (Of::width / 2);
        to.pairs[line][pair] = from.pair(first + line, 2 * pair);
    }
}

/// A left factor: the warp's 16 rows, in steps of 16 elements, kept in registers or read on demand.
template<int slices, bool keeps, typename Element>
struct Left {
    static constexpr int steps = Tile<slices>::width / 16;
    Lines<Element> lines;
    int first;
    std::uint32_t kept[keeps ? steps : 1][4];

    __device__ Left(const Lines<Element>& lines, int first) : lines(lines), first(first)
    {
        if constexpr (keeps)
#pragma unroll // or the registers are memory, as in what follows
            for (int step = 0; step < steps; ++step)
                read(kept[step], step);
    }
    __device__ void read(std::uint32_t (&to)[4], int step) const
    {
#pragma unroll
        for (int part = 0; part < 4; ++part)
            to[part] = lines.pair(first + laneRow() + part % 2 * 8, step * 16 + part / 2 * 8 + laneColumn());
    }
};

/// sums[n] += left · transpose of the tile's rows 8 n to 8 n + 7: products of rows with rows.
template<int slices, bool keeps, typename Element, int groups>
__device__ void multiplyByRows(float (&sums)[groups][4], const Left<slices, keeps, Element>& left,
                               const Tile<slices>& tile)
{
    static_assert(groups * 8 == Tile<slices>::rows);
    const auto multiply = [&](const std::uint32_t(&rows)[4], int step) {
#pragma unroll
        for (int n = 0; n < groups; ++n) {
            const std::uint32_t* const row = tile.pairs[n * 8 + laneRow()] + step * 8 + laneColumn() / 2;
            const std::uint32_t right[2] = {row[0], row[4]};
            multiplyInWarp(sums[n], rows, right);
        }
    };
    if constexpr (keeps) {
#pragma unroll
        for (int step = 0; step < left.steps; ++step)
            multiply(left.kept[step], step);
    } else {
#pragma unroll 1 // or all are read before the first is used, into registers that there are not
        for (int step = 0; step < left.steps; ++step) {
            std::uint32_t rows[4];
            left.read(rows, step);
            multiply(rows, step);
        }
    }
}

/// Converts 16 columns of a product's sums to a left factor.
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

/// Calls take(column, value) for a lane's elements of its first (half 0) or second (half 1) row.
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

/// Reduction over the four lanes that share a row; all of them get the result.
template<typename Combine>
__device__ float combineLanes(float value, Combine combine)
{
    for (int lanes = 2; lanes > 0; lanes /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    return value;
}

} // namespace pipewright::kernels::cuda
