// SPDX-License-Identifier: GPL-3.0-or-later
// Shared by both implementations of the experts' matrix products. The number of rows of each expert is known only on
// the GPU, so the grid has the largest possible number of tiles, and blocks without a tile return. experts.cu computes
// in fp32, tensorexperts.cu multiplies bf16 on tensor cores.
#pragma once

#include "kernels/cuda/kernels.h"

namespace pipewright::kernels::cuda {

/// A tile of an expert's rows.
struct RowTile {
    int expert; ///< -1: none
    int begin, rows, first;
};

/// Tile `number`, where every expert's rows are divided into tiles of `side` rows.
__device__ inline RowTile rowTile(int experts, const std::int32_t* begin, int number, int side)
{
    for (int e = 0; e < experts; ++e) {
        const int rows = begin[e + 1] - begin[e], tiles = (rows + side - 1) / side;
        if (number < tiles)
            return {e, begin[e], rows, number * side};
        number -= tiles;
    }
    return {-1, 0, 0, 0};
}

/// Upper bound of the number of row tiles: every expert may have one that is not full.
inline unsigned rowTilesOf(std::size_t copies, int experts, int side)
{
    return unsigned(copies / std::size_t(side) + std::size_t(experts));
}

/// For products whose factors are exact in bf16.
void launchOnTensorCores(const Context& context, const ExpertsForward& call);
void launchOnTensorCores(const Context& context, const ExpertsInputGrad& call);
void launchOnTensorCores(const Context& context, const ExpertsWeightGrad& call); ///< without biases

} // namespace pipewright::kernels::cuda
