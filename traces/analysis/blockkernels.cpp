// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/blockkernels.h"

#include "core/base/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

void addTo(std::vector<BlockKernels::Group>& groups, const BlockKernels::Group& more)
{
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.group == more.group; });
    if (known == groups.end()) {
        groups.push_back(more);
        return;
    }
    known->kernels += more.kernels;
    known->time += more.time;
}

void sortByTime(std::vector<BlockKernels::Group>& groups)
{
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.time > b.time; });
}

} // namespace

std::vector<BlockKernels> blockKernels(const Program& program, const GpuWork& work, const Timeline& measured,
                                       const KernelGroups& groups)
{
    std::vector<BlockKernels> blocks(program.tasks.size());
    std::vector<Nanoseconds> until(program.tasks.size(), 0); // latest end among the block's slices so far
    std::vector<std::optional<std::size_t>> groupOfName(work.names.size());
    for (const GpuWork::Slice& slice : work.slices) {
        if (slice.task >= blocks.size() || moves(program.tasks[slice.task].kind)
            || measured.start[slice.task] == notRun)
            continue;
        BlockKernels& block = blocks[slice.task];
        Nanoseconds& end = until[slice.task];
        if (block.kernels.empty()) {
            end = std::min(measured.start[slice.task], slice.start);
            block.byEvents = measured.end[slice.task] - measured.start[slice.task];
        }
        if (slice.start > end) {
            BlockKernels::Gap gap{end, slice.start, 0};
            if (slice.launched != GpuWork::unknown)
                gap.launching = std::clamp(slice.launched, gap.start, gap.end) - gap.start;
            block.launching += gap.launching;
            block.gaps.push_back(gap);
        }
        block.launchesKnown = block.launchesKnown && slice.launched != GpuWork::unknown;
        block.running += std::max<Nanoseconds>(0, slice.end - std::max(end, slice.start));
        end = std::max(end, slice.end);
        std::optional<std::size_t>& known = groupOfName[slice.name];
        if (!known)
            known = groups.of(slice.kind, work.names[slice.name]);
        block.kernels.push_back({slice.start, slice.end, *known, slice.name, slice.gpu});
        addTo(block.groups, {*known, 1, slice.end - slice.start});
    }
    for (TaskId task = 0; task < blocks.size(); ++task) {
        BlockKernels& block = blocks[task];
        if (block.kernels.empty())
            continue;
        block.byKernels = until[task] - block.kernels.front().start;
        sortByTime(block.groups);
    }
    return blocks;
}

KernelTotals totalsOf(const Program& program, const std::vector<BlockKernels>& blocks, const GpuWork& work,
                      const Timeline& measured)
{
    KernelTotals totals;
    totals.kind = work.kind;
    totals.overhead = work.overhead;
    totals.overheads = work.overheads;
    for (TaskId task = 0; task < blocks.size(); ++task) {
        const BlockKernels& block = blocks[task];
        if (block.kernels.empty()) {
            totals.without += program.tasks[task].kind == TaskKind::Compute && measured.start[task] != notRun;
            continue;
        }
        ++totals.blocks;
        totals.byEvents += block.byEvents;
        totals.byKernels += block.byKernels;
        totals.running += block.running;
        totals.launching += block.launching;
        for (const BlockKernels::Group& group : block.groups)
            addTo(totals.groups, group);
    }
    sortByTime(totals.groups);
    return totals;
}

std::optional<KernelTotals> kernelTotals(const TraceReader& trace, const Program& program, int step)
{
    if (const auto kind = trace.recordedWork(); kind != WorkKind::Kernels && kind != WorkKind::Operators)
        return std::nullopt;
    const GpuWork work = trace.gpuWork(program, step);
    const Timeline measured = trace.timeline(program, step, BlockTime::Events);
    return totalsOf(program, blockKernels(program, work, measured, KernelGroups::standard()), work, measured);
}

std::string blockTimesText(const KernelTotals& totals)
{
    const double change =
        totals.byEvents > 0 ? static_cast<double>(totals.byKernels) / static_cast<double>(totals.byEvents) - 1 : 0;
    return fmt::format("{} by events, {} by {} ({:+.1f} %)", formatDuration(totals.byEvents),
                       formatDuration(totals.byKernels), nameOf(totals.kind), 100 * change);
}

} // namespace pipewright
