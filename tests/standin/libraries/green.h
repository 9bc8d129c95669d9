// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of a GPU's multiprocessors, by the rules of cuda.h (CUDA 13.0), lines 24697 to 25080: which resources may be
// split, which may be combined in a descriptor, and what a green context then has.
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

/// The address of the newest version of a driver function that is not newer than `version`; null: none. `known`:
/// whether any version exists.
void* driverEntryPoint(const char* name, int version, bool* known);

/// An existing context.
struct ContextMade {
    std::uint32_t context = 0;
    int device = 0;
    std::uint32_t parent = 0; ///< of a green one
    int multiprocessors = 0;
};
std::vector<ContextMade> contextsSoFar();

/// Creates the GPU's primary context on first use, as cudaSetDevice and other calls do.
void usePrimaryContext(int device);

} // namespace standin
