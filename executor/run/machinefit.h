// SPDX-License-Identifier: GPL-3.0-or-later
// Whether what a design is predicted to hold fits into a machine's memory, and with what it would: asked before a run
// is started, instead of after a long start with a failed allocation.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "executor/cuda/table.h"

#include <span>
#include <string_view>
#include <vector>

namespace pipewright {

struct MachineMemory {
    Bytes host = 0;                           ///< of all of the machine; 0: not known
    std::vector<PipewrightCudaDevice> gpus{}; ///< empty: not known, or none
};

/// `peaks`: predicted bytes of each device of the design. Devices of the host share its memory, those of "cuda" that of
/// the GPU they run on. One error per memory that is too small; of "mpi" a warning, as its processes may have other
/// machines. `scale`: of the bytes, as `--memory-scale`.
Diagnostics whyTooLarge(const Design& design, std::span<const Bytes> peaks, std::string_view backend,
                        const MachineMemory& memory, double scale = 1);

/// 1 where the bytes fit, else the largest of 1/10, 1/100 … with which timed blocks do: half of the memory is left to
/// everything else.
double memoryScaleThatFits(const Design& design, std::span<const Bytes> peaks, std::string_view backend,
                           const MachineMemory& memory);

} // namespace pipewright
