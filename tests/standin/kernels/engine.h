// SPDX-License-Identifier: GPL-3.0-or-later
// The services that the engine gives to a kernel's threads: their position in the grid, waits for other threads of the
// block or warp, and the block's shared memory. device.h gives them CUDA's names.
#pragma once

#include "launch.h"

#include <cstdint>

namespace standin {

// Set for the running thread. Without constinit every access would call a function that checks for initialisation.
extern constinit thread_local Extent currentThread, currentBlock, currentGridSize, currentBlockSize;

/// The number of the running thread in its block; modulo warpLanes it is its lane.
unsigned threadNumber();
inline constexpr unsigned warpLanes = 32;
/// The multiprocessor of the running block.
unsigned multiprocessor();

/// A line of the source.
struct Where {
    const char* file = "";
    int line = 0;
};

/// Waits until every thread of the block has called it.
void waitForBlock(const Where& where);

/// Waits until every lane of `mask` has called it, and returns the bits of lane `source`.
std::uint64_t exchangeInWarp(const char* what, std::uint32_t mask, std::uint64_t bits, unsigned source,
                             const Where& where);
/// The same for a vote: one bit for each lane of `mask`.
std::uint32_t voteInWarp(const char* what, std::uint32_t mask, bool vote, const Where& where);

/// Waits until all lanes of the warp have called it, and adds to each lane's four sums its part of the product of 16 x
/// 16 by 16 x 8 bf16 numbers. A lane provides four pairs of the left factor and two of the right one, as the PTX ISA
/// describes under "Matrix Fragments for mma.m16n8k16 with floating point type".
void multiplyInWarp(float* sums, const std::uint32_t* left, const std::uint32_t* right, const Where& where);

/// An address in the block's shared memory, the same for all calls with one `key` in a block. It is filled with a NaN
/// pattern; bytes after it are out of bounds for the address sanitizer.
void* sharedMemory(const void* key, std::size_t bytes, std::size_t alignment);

} // namespace standin
