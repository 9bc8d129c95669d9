// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a design's predicted memory fits into a machine's memory, at which memory scale it would, and whether its
// devices have a core each. Checked before a run starts, so that it does not fail in an allocation after a long start.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "core/predict/timeline.h"
#include "executor/cuda/table.h"
#include "executor/run/backendcheck.h"

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

/// How many times as long a step takes when the devices are threads on so many processor cores: where more of them
/// compute at a time than there are cores, each gets its part of one. `threads`: of each device of the Program (the
/// members of a group); empty: one each. O(tasks log tasks).
double slowdownOn(int cores, const Program& program, const Timeline& timeline, const std::vector<int>& threads = {});

/// A warning where a run that computes has more threads than this machine has cores, and by how much that slows it
/// down. Blocks that sleep need none. `cores`: 0: this machine's. O(tasks log tasks).
Diagnostics whySlow(const Design& design, const RunMeans& means, bool trains, int cores = 0);

} // namespace pipewright
