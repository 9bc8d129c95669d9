// SPDX-License-Identifier: GPL-3.0-or-later
// Why the GPU of each device was idle in a measured step, judged by its kernels: the data was not computed yet, a link
// was still carrying it, the host had not launched the next kernel, another slice of the same GPU was working, or none
// of these. It is finer than the analysis by block times (explanation.h), since it knows when each launch was made and
// also sees gaps inside blocks.
#pragma once

#include "traces/store/tracereader.h"

#include <vector>

namespace pipewright {

struct GpuGaps {
    int device = 0;
    bool recorded = false; ///< false: none of its kernels was recorded, and all times are 0
    Nanoseconds running = 0;
    Nanoseconds lateData = 0;   ///< the next block's input was not computed yet
    Nanoseconds link = 0;       ///< the input was computed and in transfer
    Nanoseconds host = 0;       ///< the input was there, but the call for the next kernel was not done
    Nanoseconds otherSlice = 0; ///< the kernel was launched, but kernels of another device ran on the same GPU
    Nanoseconds other = 0;      ///< launched: kernel start, waits for events or memory; or the call is unknown
    /// The part of otherSlice before the first kernel of a block.
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
