// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a design's predicted memory fits into a machine's memory, and at which memory scale it would. Checked before
// a run starts, so that it does not fail in an allocation after a long start.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "executor/cuda/table.h"

#include <span>
#include <string_view>
#include <vector>

namespace pipewright {

struct MachineMemory {
    Bytes host = 0;                           ///< of the whole machine; 0: not known
    std::vector<PipewrightCudaDevice> gpus{}; ///< empty: not known, or none
};

/// `peaks`: predicted bytes of each device of the design. Devices of the host share its memory; devices of "cuda" share
/// that of the GPU they run on. One error per memory that is too small; with "mpi" a warning, as its processes may run
/// on other machines. `scale`: factor of the bytes, as `--memory-scale`.
Diagnostics whyTooLarge(const Design& design, std::span<const Bytes> peaks, std::string_view backend,
                        const MachineMemory& memory, double scale = 1);

/// 1 if the bytes fit; else the largest of 1/10, 1/100 … with which timed blocks use at most half of each memory.
double memoryScaleThatFits(const Design& design, std::span<const Bytes> peaks, std::string_view backend,
                           const MachineMemory& memory);

} // namespace pipewright
