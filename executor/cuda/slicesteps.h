// SPDX-License-Identifier: GPL-3.0-or-later
// Possible sizes of a GPU's slices in multiprocessors, from the documentation of cuDevSmResourceSplitByCount in cuda.h.
// From CUDA 13 on, the driver reports them.
#pragma once

namespace pipewright {

struct SliceSteps {
    unsigned least = 2; ///< multiprocessors of a slice
    unsigned step = 2;  ///< sizes are multiples of this
};

constexpr SliceSteps sliceStepsOf(int major) ///< of the compute capability
{
    if (major >= 9)
        return {8, 8};
    return {major == 8 ? 4u : 2u, 2};
}

} // namespace pipewright
