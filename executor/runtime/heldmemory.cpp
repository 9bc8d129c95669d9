// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/heldmemory.h"

#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <numeric>

namespace pipewright {

namespace {

constexpr const char* remedy = "use fewer or smaller microbatches, fewer sends on their way, or another schedule";

} // namespace

LinkOptions linkOptions(const PlannedLink& link, int storedSends, bool mayBeSlowed)
{
    return {storedSends, link.largest, link.postings, mayBeSlowed};
}

std::vector<HeldMemory> predictMemory(const Program& program, std::span<const BufferPlaces> places,
                                      std::span<const PlannedLink> links, int storedSends, const StageWork& work,
                                      Backend& backend)
{
    std::vector<HeldMemory> devices(program.devices.size());
    for (std::size_t d = 0; d < devices.size(); ++d) {
        const int number = static_cast<int>(d);
        const Capabilities capabilities = backend.device(number).capabilities();
        HeldMemory& memory = devices[d];
        memory.peak = program.devices[d].peakBytes;
        memory.gaps = places[d].arena.bytes + places[d].lastingBytes - memory.peak;
        memory.maths = capabilities.workspaceBytes;
        memory.text = work.bytesBeside(program, number, capabilities);
    }
    for (const PlannedLink& link : links) {
        const LinkMemory memory = backend.linkMemory(link.from, link.to, linkOptions(link, storedSends, true));
        devices[link.from].links += memory.sender;
        devices[link.to].links += memory.receiver;
    }
    return devices;
}

std::vector<HeldMemory> predictMemory(const Program& program, int eagerSlots, StageWork& work, Backend& backend)
{
    std::vector<BufferPlaces> places;
    for (std::size_t d = 0; d < program.devices.size(); ++d)
        places.push_back(planBuffers(program, static_cast<int>(d)));
    return predictMemory(program, places, planLinks(program, work), storedSends(program, eagerSlots), work, backend);
}

int storedSends(const Program& program, int eagerSlots)
{
    return program.communication == Communication::Overlapped ? eagerSlots : 0;
}

std::string describe(const HeldMemory& memory)
{
    std::string text = formatSize(memory.peak) + " at the peak of its buffers";
    const auto add = [&text](Bytes bytes, const char* what) {
        if (bytes > 0)
            text += fmt::format(", {} {}", formatSize(bytes), what);
    };
    add(memory.maths, "for its maths");
    add(memory.text, "of text and losses");
    add(memory.links, "for its links");
    add(memory.gaps, "of gaps between buffers");
    return text;
}

Diagnostics whyNotFitting(std::span<const HeldMemory> predicted, Backend& backend, Bytes limit)
{
    Diagnostics why;
    std::map<int, std::vector<std::size_t>> devicesOfPool;
    for (std::size_t d = 0; d < predicted.size(); ++d) {
        const int number = static_cast<int>(d);
        if (!backend.isLocal(number))
            continue;
        if (limit > 0 && predicted[d].total() > limit)
            why.push_back({Severity::Error, fmt::format("device {}", d),
                           fmt::format("would hold {}, and may hold {}: {}", formatSize(predicted[d].total()),
                                       formatSize(limit), describe(predicted[d])),
                           remedy});
        else if (const Device::Pool pool = backend.device(number).memory(); pool.bytes > 0)
            devicesOfPool[pool.number].push_back(d);
    }
    for (const auto& [pool, devices] : devicesOfPool) {
        const Bytes there = backend.device(static_cast<int>(devices.front())).memory().bytes;
        const Bytes all = std::accumulate(devices.begin(), devices.end(), Bytes{0},
                                          [&](Bytes sum, std::size_t d) { return sum + predicted[d].total(); });
        if (all <= there)
            continue;
        std::vector<std::string> parts;
        for (const std::size_t d : devices)
            parts.push_back(devices.size() == 1 ? describe(predicted[d])
                                                : fmt::format("device {} {}", d, describe(predicted[d])));
        why.push_back({Severity::Error,
                       fmt::format("device{} {}", devices.size() == 1 ? "" : "s", joined(devices, ", ")),
                       fmt::format("would hold {}{}, and {} has {}: {}", devices.size() == 1 ? "" : "together ",
                                   formatSize(all), backend.device(static_cast<int>(devices.front())).name(),
                                   formatSize(there), joined(parts, "; ")),
                       remedy});
    }
    return why;
}

Diagnostics whyNotAsPredicted(std::span<const HeldMemory> predicted, std::span<const Bytes> allocated)
{
    Diagnostics why;
    for (std::size_t d = 0; d < predicted.size() && d < allocated.size(); ++d)
        if (allocated[d] != predicted[d].total())
            why.push_back({Severity::Warning, fmt::format("device {}", d),
                           fmt::format("{} were allocated and {} predicted: {}", exactSize(allocated[d]),
                                       exactSize(predicted[d].total()), describe(predicted[d])),
                           "this is a fault of the program: please report it with the design"});
    return why;
}

} // namespace pipewright
