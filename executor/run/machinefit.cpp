// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/machinefit.h"

#include "core/base/units.h"
#include "executor/cuda/gpushares.h"

#include <fmt/format.h>

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
