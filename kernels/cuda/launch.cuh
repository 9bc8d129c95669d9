// SPDX-License-Identifier: GPL-3.0-or-later
// What several kernels share: how many blocks, a thread per element, and sums over a block whose order is fixed.
#pragma once

#include "kernels/cuda/kernels.h"

#include <cstddef>

namespace pipewright::kernels::cuda {

constexpr unsigned blockSize = 256;

inline unsigned blocksFor(std::size_t elements)
{
    return static_cast<unsigned>((elements + blockSize - 1) / blockSize);
}

/// value(i) for every element; 64-bit indices, since tensors pass 2^31 elements.
template<typename Each>
__global__ void forEach(std::size_t count, Each each)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        each(i);
}

/// each(i), of a thread of its own, for every i below `count`.
template<typename Each>
void launchEach(const Context& context, std::size_t count, Each each)
{
    if (count > 0)
        forEach<<<blocksFor(count), blockSize, 0, context.stream>>>(count, each);
}

template<typename Value>
__device__ Value warpSum(Value value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

__device__ inline float warpMax(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
}

/// Of blockSize threads; all get it.
template<typename Value, typename Combine>
__device__ Value blockCombine(Value value, Value neutral, Combine combineWarp)
{
    __shared__ Value partial[blockSize / 32];
    value = combineWarp(value);
    __syncthreads(); // an earlier call's reads are over
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = value;
    __syncthreads();
    return combineWarp(threadIdx.x % 32 < blockSize / 32 ? partial[threadIdx.x % 32] : neutral);
}

template<typename Value>
__device__ Value blockSum(Value value)
{
    return blockCombine(value, Value(0), [](Value each) { return warpSum(each); });
}

__device__ inline float blockMax(float value)
{
    return blockCombine(value, -INFINITY, [](float each) { return warpMax(each); });
}

} // namespace pipewright::kernels::cuda
