// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of a GPU's multiprocessors, by the rules of cuda.h (CUDA 13.0), lines 24697 to 25080: what may be split, what
// may be described together, and what a green context then holds.
#pragma once

#include <cstdint>
#include <vector>

namespace standin {

/// A green context.
struct Slice {
    int device = 0;
    unsigned multiprocessors = 0, first = 0;
    std::uint32_t context = 0; ///< of CUPTI
};

/// The address of the newest form of a function of the driver that is not newer than the version; null: there is none.
/// `known`: of any version.
void* driverEntryPoint(const char* name, int version, bool* known);

/// A context that there is.
struct ContextMade {
    std::uint32_t context = 0;
    int device = 0;
    std::uint32_t parent = 0; ///< of a green one
    int multiprocessors = 0;
};
std::vector<ContextMade> contextsSoFar();

/// Begins what cudaSetDevice and its like begin: the GPU's context.
void usePrimaryContext(int device);

} // namespace standin
