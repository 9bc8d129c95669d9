// SPDX-License-Identifier: GPL-3.0-or-later
// The kernels of a measured block: what ran when, the gaps between kernels, time by groups of work, and how much of the
// block was limited by launching, that is the GPU had nothing of the block to run because the host's call for the next
// kernel was not done yet. Times count from the step's start, as in a Timeline.
#pragma once

#include "traces/store/kernelgroups.h"
#include "traces/store/tracereader.h"

#include <optional>

namespace pipewright {

struct BlockKernels {
    struct Kernel {
        Nanoseconds start = 0, end = 0;
        std::size_t group = 0;  ///< index into KernelGroups::names()
        std::uint32_t name = 0; ///< index into GpuWork::names
        int gpu = 0;            ///< GpuWork::Slice::gpu; for a group its member, numbered over all groups
    };
    struct Gap { ///< part of the block in which none of its kernels runs
        Nanoseconds start = 0, end = 0;
        Nanoseconds launching = 0; ///< its part before the call for the kernel that ends it was done
    };
    struct Group {
        std::size_t group = 0;
        std::int64_t kernels = 0;
        Nanoseconds time = 0;
    };
    std::vector<Kernel> kernels; ///< by start
    std::vector<Gap> gaps;       ///< between its events' start and its last kernel's end
    std::vector<Group> groups;   ///< the longest first
    Nanoseconds byEvents = 0;    ///< duration between the block's events
    Nanoseconds byKernels = 0;   ///< from its first kernel's start to its last one's end
    Nanoseconds running = 0;     ///< with at least one kernel
    Nanoseconds launching = 0;   ///< sum over the gaps
    bool launchesKnown = true;   ///< false: some call was not recorded, so `launching` may be longer
    double launchBound() const
    {
        return byEvents > 0 ? static_cast<double>(launching) / static_cast<double>(byEvents) : 0;
    }
};

/// Per task of the program; tasks without kernels get an empty entry. `measured`: by events. O(slices log slices).
std::vector<BlockKernels> blockKernels(const Program& program, const GpuWork& work, const Timeline& measured,
                                       const KernelGroups& groups);

/// All blocks of a step together.
struct KernelTotals {
    WorkKind kind = WorkKind::Kernels;
    std::int64_t blocks = 0, without = 0;    ///< compute blocks with kernels, and those that ran without any
    Nanoseconds byEvents = 0, byKernels = 0; ///< of the blocks with kernels
    Nanoseconds running = 0, launching = 0;
    std::vector<BlockKernels::Group> groups; ///< the longest first
    Nanoseconds overhead = 0;                ///< CUPTI's own work in the step
    std::int64_t overheads = 0;
};
KernelTotals totalsOf(const Program& program, const std::vector<BlockKernels>& blocks, const GpuWork& work,
                      const Timeline& measured);
/// For one step; nullopt where neither kernels nor operators were recorded.
std::optional<KernelTotals> kernelTotals(const TraceReader& trace, const Program& program, int step);

/// "1.2 ms by events, 1.1 ms by kernels (-8.3 %)", for all blocks that have kernels; "by operators".
std::string blockTimesText(const KernelTotals& totals);

} // namespace pipewright
