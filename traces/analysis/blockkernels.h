// SPDX-License-Identifier: GPL-3.0-or-later
// A measured block unfolded into its kernels: what ran when, the gaps between, by groups of work, and how much of the
// block was bound by launching: the GPU had nothing of the block to do, since the host's call for the next kernel was
// not done yet. Times count from the step's start, as a Timeline's.
#pragma once

#include "traces/store/kernelgroups.h"
#include "traces/store/tracereader.h"

#include <optional>

namespace pipewright {

struct BlockKernels {
    struct Kernel {
        Nanoseconds start = 0, end = 0;
        std::size_t group = 0;  ///< into KernelGroups::names()
        std::uint32_t name = 0; ///< into GpuWork::names
        int gpu = 0;            ///< GpuWork::Slice::gpu; of a group its member, numbered over all
    };
    struct Gap { ///< within the block, with none of its kernels running
        Nanoseconds start = 0, end = 0;
        Nanoseconds launching = 0; ///< of it: until the call for what ends it was done
    };
    struct Group {
        std::size_t group = 0;
        std::int64_t kernels = 0;
        Nanoseconds time = 0;
    };
    std::vector<Kernel> kernels; ///< by start
    std::vector<Gap> gaps;       ///< between its events' start and its last kernel's end
    std::vector<Group> groups;   ///< the longest first
    Nanoseconds byEvents = 0;    ///< as long as the block took between its events
    Nanoseconds byKernels = 0;   ///< from its first kernel's start to its last one's end
    Nanoseconds running = 0;     ///< with at least one kernel
    Nanoseconds launching = 0;   ///< the sum of the gaps'
    bool launchesKnown = true;   ///< false: some call was not recorded, so there may be more of it
    double launchBound() const
    {
        return byEvents > 0 ? static_cast<double>(launching) / static_cast<double>(byEvents) : 0;
    }
};

/// Per task of the program; without kernels for those that have none. `measured` by events. O(slices log slices).
std::vector<BlockKernels> blockKernels(const Program& program, const GpuWork& work, const Timeline& measured,
                                       const KernelGroups& groups);

/// All blocks of a step together.
struct KernelTotals {
    WorkKind kind = WorkKind::Kernels;
    std::int64_t blocks = 0, without = 0;    ///< computing blocks with kernels, and those that ran and have none
    Nanoseconds byEvents = 0, byKernels = 0; ///< of the blocks with kernels
    Nanoseconds running = 0, launching = 0;
    std::vector<BlockKernels::Group> groups; ///< the longest first
    Nanoseconds overhead = 0;                ///< CUPTI's own work in the step
    std::int64_t overheads = 0;
};
KernelTotals totalsOf(const Program& program, const std::vector<BlockKernels>& blocks, const GpuWork& work,
                      const Timeline& measured);
/// Of one step; nothing where neither kernels nor operators were recorded.
std::optional<KernelTotals> kernelTotals(const TraceReader& trace, const Program& program, int step);

/// "1.2 ms by events, 1.1 ms by kernels (-8.3 %)", for all blocks that have kernels; "by operators".
std::string blockTimesText(const KernelTotals& totals);

} // namespace pipewright
