// SPDX-License-Identifier: GPL-3.0-or-later
// Why the GPU of each device was idle in a measured step, from its kernels: the data was not made yet, the link was
// still carrying it, the host had not launched what comes next, another slice of the same GPU was working, or none of
// these. Finer than what the times of blocks say (explanation.h), since it knows when each launch was made and looks
// inside the blocks.
#pragma once

#include "traces/store/tracereader.h"

#include <vector>

namespace pipewright {

struct GpuGaps {
    int device = 0;
    bool recorded = false; ///< false: none of its kernels were, and all times are 0
    Nanoseconds running = 0;
    Nanoseconds lateData = 0;   ///< what the next block reads was not computed yet
    Nanoseconds link = 0;       ///< it was computed and on its way
    Nanoseconds host = 0;       ///< it was there, and the call for the next kernel was not done
    Nanoseconds otherSlice = 0; ///< it was launched, and kernels of another device ran on the same GPU
    Nanoseconds other = 0;      ///< it was launched: starting a kernel, waits for events or memory; or no call is known
    /// Of otherSlice, what stood before the first kernel of a block.
    struct Shared {
        TaskId task = none;
        Nanoseconds time = 0;
    };
    std::vector<Shared> shared; ///< by time; blocks without any are left out
    Nanoseconds coolDown = 0;   ///< after its last kernel until the step's last block ended
};

/// By device; the times of each add up to the step. `measured` by events. O(slices x devices of a GPU).
std::vector<GpuGaps> gpuGaps(const Program& program, const GpuWork& work, const Timeline& measured);

} // namespace pipewright
