// SPDX-License-Identifier: GPL-3.0-or-later
// Shared by several kernels: the number of blocks, one thread per element, and reductions over a block in a fixed
// order.
#pragma once

#include "kernels/cuda/kernels.h"

#include <algorithm>
#include <cstddef>

namespace pipewright::kernels::cuda {

constexpr unsigned blockSize = 256;

inline unsigned blocksFor(std::size_t elements)
{
    return static_cast<unsigned>((elements + blockSize - 1) / blockSize);
}

/// Threads of a block that handles one row: whole warps, and no more of them than there are elements, up to blockSize.
/// Further ones would only take part in the barriers.
inline unsigned threadsForRow(std::size_t elements)
{
    return static_cast<unsigned>(std::min<std::size_t>(blockSize, std::max<std::size_t>(1, (elements + 31) / 32) * 32));
}

/// Calls each(i) for every element; 64-bit indices, since tensors can have more than 2^31 elements.
template<typename Each>
__global__ void forEach(std::size_t count, Each each)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        each(i);
}

/// Calls each(i), on a thread of its own, for every i below `count`.
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

/// Reduction over the threads of a block, whole warps and at most blockSize; all of them get the result.
template<typename Value, typename Combine>
__device__ Value blockCombine(Value value, Value neutral, Combine combineWarp)
{
    __shared__ Value partial[blockSize / 32];
    value = combineWarp(value);
    __syncthreads(); // reads of an earlier call are done
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = value;
    __syncthreads();
    return combineWarp(threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : neutral);
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
