// SPDX-License-Identifier: GPL-3.0-or-later
// What both ways to multiply experts' matrices share. How many rows an expert has is known on the GPU only, so there
// are as many blocks as tiles could come to, and those without one leave. experts.cu computes in fp32, tensorexperts.cu
// multiplies bf16 on tensor cores.
#pragma once

#include "kernels/cuda/kernels.h"

namespace pipewright::kernels::cuda {

/// A tile of an expert's rows.
struct RowTile {
    int expert; ///< -1: none
    int begin, rows, first;
};

/// Of tiles of `side` rows the one of that number.
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

/// As many tiles of rows as there can be: every expert may have one that is not full.
inline unsigned rowTilesOf(std::size_t copies, int experts, int side)
{
    return unsigned(copies / std::size_t(side) + std::size_t(experts));
}

/// Of products whose factors bf16 can hold.
void launchOnTensorCores(const Context& context, const ExpertsForward& call);
void launchOnTensorCores(const Context& context, const ExpertsInputGrad& call);
void launchOnTensorCores(const Context& context, const ExpertsWeightGrad& call); ///< without biases

} // namespace pipewright::kernels::cuda
