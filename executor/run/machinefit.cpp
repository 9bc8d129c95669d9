// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/machinefit.h"

#include "core/base/units.h"
#include "core/predict/predict.h"
#include "executor/cuda/gpushares.h"
#include "executor/run/grouprun.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace pipewright {

namespace {

struct MemoryUse {
    std::string name; ///< "this machine", "GPU 1"
    Bytes has = 0;    ///< 0: not known
    double asked = 0;
    int devices = 0;
};

std::vector<MemoryUse> memoryUses(const Design& design, std::span<const Bytes> peaks, std::string_view backend,
                                  const MachineMemory& memory)
{
    if (backend != "cuda") {
        MemoryUse host{"this machine", memory.host};
        for (const Bytes peak : peaks)
            host.asked += static_cast<double>(peak);
        host.devices = static_cast<int>(peaks.size());
        return {host};
    }
    std::vector<MemoryUse> uses;
    for (std::size_t gpu = 0; gpu < memory.gpus.size(); ++gpu)
        uses.push_back({fmt::format("GPU {}", gpu), static_cast<Bytes>(memory.gpus[gpu].memory)});
    for (std::size_t device = 0; device < peaks.size() && !uses.empty(); ++device) {
        const auto& wanted = design.cluster.gpus;
        const std::size_t gpu =
            device < wanted.size() ? static_cast<std::size_t>(wanted[device].gpu) : device % uses.size();
        if (gpu >= uses.size())
            continue; // whyNotPlaced() reports it
        uses[gpu].asked += static_cast<double>(peaks[device]);
        ++uses[gpu].devices;
    }
    return uses;
}

} // namespace

Diagnostics whyTooLarge(const Design& design, std::span<const Bytes> peaks, std::string_view backend,
                        const MachineMemory& memory, double scale)
{
    Diagnostics why;
    for (const MemoryUse& use : memoryUses(design, peaks, backend, memory)) {
        const double asked = use.asked * scale;
        if (use.has <= 0 || asked <= static_cast<double>(use.has))
            continue;
        why.push_back({backend == "mpi" ? Severity::Warning : Severity::Error, use.name,
                       fmt::format("{} device{} would hold {}, and it has {}", use.devices, use.devices == 1 ? "" : "s",
                                   formatSize(static_cast<Bytes>(asked)), formatSize(use.has)),
                       "let its blocks sleep for their times and hold a part of their bytes, or take a smaller model, "
                       "shorter sequences or fewer microbatches"});
    }
    return why;
}

double slowdownOn(int cores, const Program& program, const Timeline& timeline, const std::vector<int>& threads)
{
    std::vector<std::pair<Nanoseconds, int>> changes; // of the number of threads that compute
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (!traitsOf(task.kind).computes || timeline.start[t] == notRun)
            continue;
        const auto device = static_cast<std::size_t>(task.device);
        const int count = device < threads.size() ? threads[device] : 1;
        changes.emplace_back(timeline.start[t], count);
        changes.emplace_back(timeline.end[t], -count);
    }
    std::sort(changes.begin(), changes.end());
    double slowed = 0;
    int computing = 0;
    for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
        computing += changes[i].second;
        slowed += static_cast<double>(changes[i + 1].first - changes[i].first)
                  * std::max(1.0, static_cast<double>(computing) / std::max(1, cores));
    }
    const double alone = changes.empty() ? 0 : static_cast<double>(changes.back().first - changes.front().first);
    return alone > 0 ? slowed / alone : 1;
}

Diagnostics whySlow(const Design& design, const RunMeans& means, bool trains, int cores)
{
    if (means.backend != "host" || means.virtualClock || (!trains && means.maths != RunOptions::Maths::Synthetic))
        return {};
    if (cores <= 0)
        cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int devices = devicesOfRun(design, means);
    if (devices <= cores)
        return {};
    std::vector<int> threads;
    for (const DeviceSpec& device : design.cluster.devices)
        threads.push_back(device.group && runsMembers(design, means) ? static_cast<int>(device.group->devices.size())
                                                                     : 1);
    const OutlinedPrediction prediction = predictOutline(design);
    return {{Severity::Warning, "--backend host",
             fmt::format("{} devices compute on {} core{} of this machine: a step takes about {:.1f} times as long as "
                         "with a core for each",
                         devices, cores, cores == 1 ? "" : "s",
                         slowdownOn(cores, prediction.program, prediction.timeline, threads)),
             "measure with fewer devices, or use --maths timed, whose blocks sleep for their times"}};
}

double memoryScaleThatFits(const Design& design, std::span<const Bytes> peaks, std::string_view backend,
                           const MachineMemory& memory)
{
    if (whyTooLarge(design, peaks, backend, memory).empty())
        return 1;
    constexpr double half = 0.5, least = 1e-9;
    double scale = 0.1;
    for (const MemoryUse& use : memoryUses(design, peaks, backend, memory))
        while (use.has > 0 && use.asked * scale > half * static_cast<double>(use.has) && scale > least)
            scale /= 10;
    return scale;
}

} // namespace pipewright
