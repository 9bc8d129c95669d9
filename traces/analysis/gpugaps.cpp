// SPDX-License-Identifier: GPL-3.0-or-later
// Walks the kernels by start. An idle stretch of a device is split from its beginning on: until the data was computed,
// until it arrived, until the launch, and the time in which other slices of the GPU worked; the rest has no known
// cause. O(kernels log kernels).
#include "traces/analysis/gpugaps.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace pipewright {

namespace {

using Stretch = std::pair<Nanoseconds, Nanoseconds>;

/// Adds a slice to a list of disjoint stretches. Slices must come in order of start.
void addTo(std::vector<Stretch>& cover, Nanoseconds start, Nanoseconds end)
{
    if (!cover.empty() && start <= cover.back().second)
        cover.back().second = std::max(cover.back().second, end);
    else
        cover.emplace_back(start, end);
}

Nanoseconds coveredBetween(const std::vector<Stretch>& cover, Nanoseconds from, Nanoseconds to)
{
    Nanoseconds covered = 0;
    auto each = std::lower_bound(cover.begin(), cover.end(), from,
                                 [](const Stretch& stretch, Nanoseconds time) { return stretch.second <= time; });
    for (; each != cover.end() && each->first < to; ++each)
        covered += std::min(to, each->second) - std::max(from, each->first);
    return covered;
}

/// When the data of a task had been computed, and when all of it had arrived.
Stretch arrivalOf(const Program& program, const Timeline& measured, TaskId task)
{
    Nanoseconds computed = 0, arrived = 0;
    const auto add = [&](TaskId input) {
        if (input == none || measured.start[input] == notRun)
            return;
        arrived = std::max(arrived, measured.end[input]);
        const TaskId producer = moves(program.tasks[input].kind) ? program.afterData[input] : input;
        computed = std::max(computed, producer == none || measured.start[producer] == notRun ? measured.start[input]
                                                                                             : measured.end[producer]);
    };
    add(program.afterData[task]);
    const auto& extras = program.extraDependencies;
    auto extra = std::lower_bound(extras.begin(), extras.end(), task,
                                  [](const Program::ExtraDependency& e, TaskId t) { return e.task < t; });
    for (; extra != extras.end() && extra->task == task; ++extra)
        add(extra->after);
    return {computed, std::max(computed, arrived)};
}

} // namespace

std::vector<GpuGaps> gpuGaps(const Program& program, const GpuWork& work, const Timeline& measured)
{
    const std::size_t devices = program.devices.size();
    const auto computes = [&](const GpuWork::Slice& slice) { // transfers are not the device's work
        return slice.device >= 0 && static_cast<std::size_t>(slice.device) < devices
               && (slice.task >= program.tasks.size() || !moves(program.tasks[slice.task].kind));
    };
    std::vector<std::vector<Stretch>> covers(devices);
    std::vector<std::set<std::pair<int, int>>> gpus(devices); // by process and number
    for (const GpuWork::Slice& slice : work.slices)
        if (computes(slice)) {
            addTo(covers[slice.device], std::max<Nanoseconds>(0, slice.start), slice.end);
            gpus[slice.device].emplace(slice.rank, slice.gpu);
        }
    // The work of all other devices on the same GPU, merged.
    std::vector<std::vector<Stretch>> others(devices);
    for (std::size_t d = 0; d < devices; ++d) {
        std::vector<Stretch> all;
        for (std::size_t o = 0; o < devices; ++o)
            if (o != d
                && std::any_of(gpus[o].begin(), gpus[o].end(), [&](const auto& gpu) { return gpus[d].contains(gpu); }))
                all.insert(all.end(), covers[o].begin(), covers[o].end());
        std::sort(all.begin(), all.end());
        for (const Stretch& stretch : all)
            addTo(others[d], stretch.first, stretch.second);
    }
    std::vector<GpuGaps> result(devices);
    std::vector<Nanoseconds> until(devices, 0);
    std::vector<bool> begun(program.tasks.size(), false);
    for (const GpuWork::Slice& slice : work.slices) {
        if (!computes(slice))
            continue;
        GpuGaps& gaps = result[slice.device];
        gaps.recorded = true;
        const Nanoseconds from = until[slice.device], to = slice.start;
        const bool first = slice.task < begun.size() && !begun[slice.task];
        if (to > from) {
            Nanoseconds at = from; // the gap is cut from its start on
            const auto take = [&](Nanoseconds end, Nanoseconds& cause) {
                end = std::clamp(end, at, to);
                cause += end - at;
                at = end;
            };
            if (first) {
                const auto [computed, arrived] = arrivalOf(program, measured, slice.task);
                take(computed, gaps.lateData);
                take(arrived, gaps.link);
            }
            if (slice.launched != GpuWork::unknown)
                take(slice.launched, gaps.host);
            const Nanoseconds shared = coveredBetween(others[slice.device], at, to);
            gaps.otherSlice += shared;
            if (first && shared > 0)
                gaps.shared.push_back({slice.task, shared});
            gaps.other += to - at - shared;
        }
        gaps.running += std::max<Nanoseconds>(0, slice.end - std::max({from, slice.start, Nanoseconds{0}}));
        until[slice.device] = std::max(from, slice.end);
        if (first)
            begun[slice.task] = true;
    }
    Nanoseconds end = 0;
    for (const Nanoseconds each : measured.end)
        end = std::max(end, each);
    for (std::size_t d = 0; d < devices; ++d) {
        result[d].device = static_cast<int>(d);
        if (result[d].recorded)
            result[d].coolDown = std::max<Nanoseconds>(0, end - until[d]);
    }
    return result;
}

} // namespace pipewright
