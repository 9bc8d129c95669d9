// SPDX-License-Identifier: GPL-3.0-or-later
// What a kernel's thread asks of the engine that runs it: where it is in the grid, to wait for the others of its block
// or warp, and the block's shared memory. device.h gives these the names of CUDA.
#pragma once

#include "launch.h"

#include <cstdint>

namespace standin {

// Set for the running thread. Without constinit every look at them would call a function that might have to construct.
extern constinit thread_local Extent currentThread, currentBlock, currentGridSize, currentBlockSize;

/// The number of the running thread in its block; of its lane in the warp: modulo warpSize.
unsigned threadNumber();
inline constexpr unsigned warpLanes = 32;
/// Where the running block is.
unsigned multiprocessor();

/// A line of the source.
struct Where {
    const char* file = "";
    int line = 0;
};

/// Waits until every thread of the block is here.
void waitForBlock(const Where& where);

/// Waits until every lane of `mask` is here, and gives the bits of the lane `source`.
std::uint64_t exchangeInWarp(const char* what, std::uint32_t mask, std::uint64_t bits, unsigned source,
                             const Where& where);
/// The same for a vote: one bit for each lane of `mask`.
std::uint32_t voteInWarp(const char* what, std::uint32_t mask, bool vote, const Where& where);

/// Waits until all lanes of the warp are here, and adds to each lane's four sums its part of the product of 16 x 16 by
/// 16 x 8 numbers of bf16. Of the left factor a lane gives four pairs, of the right one two; which, PTX ISA says under
/// "Matrix Fragments for mma.m16n8k16 with floating point type".
void multiplyInWarp(float* sums, const std::uint32_t* left, const std::uint32_t* right, const Where& where);

/// A place in the block's shared memory, the same for all calls with one `key` in a block. It begins as a pattern that
/// is not a number; what lies behind it is out of bounds for the address sanitizer.
void* sharedMemory(const void* key, std::size_t bytes, std::size_t alignment);

} // namespace standin
