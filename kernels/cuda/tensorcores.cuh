// SPDX-License-Identifier: GPL-3.0-or-later
// A warp's product of 16 x 16 by 16 x 8 numbers of bf16 on tensor cores, summed in fp32: the instruction
// mma.sync.m16n8k16, whose layout of fragments over the lanes NVIDIA documents (PTX ISA, "Matrix Fragments for
// mma.m16n8k16 with floating point type"). Lane 4 g + t holds rows g and g + 8 of the left factor, column g of the
// right factor, and rows g and g + 8 of the sums; t selects the elements within them. Two adjacent numbers share a
// register, the first in its lower half. Compute capability 8.0 and later.
#pragma once

#include <cstdint>

namespace pipewright::kernels::cuda {

__device__ inline int laneRow() ///< g
{
    return int(threadIdx.x) % 32 / 4;
}
__device__ inline int laneColumn() ///< 2 t
{
    return int(threadIdx.x) % 4 * 2;
}

/// Converts both to bf16, rounding to nearest, ties to even.
__device__ inline std::uint32_t bf16Pair(float low, float high)
{
    std::uint32_t pair = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
    return pair;
}

/// sums[0], [1]: row g, columns 2 t and 2 t + 1; sums[2], [3]: row g + 8. left[0]: row g, columns 2 t and 2 t + 1;
/// left[1]: row g + 8; left[2], left[3]: the same, 8 columns on. right[0]: column g, rows 2 t and 2 t + 1; right[1]: 8
/// rows on. All lanes of the warp call it.
__device__ inline void multiplyInWarp(float (&sums)[4], const std::uint32_t (&left)[4], const std::uint32_t (&right)[2])
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
#endif
}

} // namespace pipewright::kernels::cuda
