// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/memorycheck.h"

#include "core/json/jsonvalue.h"
#include "executor/run/grouprun.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

/// The devices that run, in order: a group's members if members run, otherwise the device itself.
std::vector<DeviceSpec> devicesThatRun(const Design& design, bool members)
{
    std::vector<DeviceSpec> devices;
    for (const DeviceSpec& spec : design.cluster.devices)
        if (members && spec.group)
            devices.insert(devices.end(), spec.group->devices.begin(), spec.group->devices.end());
        else
            devices.push_back(spec);
    return devices;
}

} // namespace

MemoryCheck checkMemory(const Design& design, const RunOptions& options)
{
    MemoryCheck check;
    try {
        check.memory = heldMemory(design, options);
    } catch (const Error& error) {
        check.reason = error.what();
        return check;
    }
    const std::vector<DeviceSpec> devices = devicesThatRun(design, runsMembers(design, meansOf(options)));
    for (std::size_t d = 0; d < std::min(devices.size(), check.memory.size()); ++d) {
        const HeldMemory& memory = check.memory[d];
        const DeviceSpec& device = devices[d];
        if (device.memory > 0 && memory.total() > device.memory)
            check.found.push_back(
                {Severity::Error, fmt::format("device {}", d),
                 fmt::format("would hold {}, {} more than the {} of {}: {}", formatSize(memory.total()),
                             formatSize(memory.total() - device.memory), formatSize(device.memory),
                             device.name.empty() ? "the device" : device.name, describe(memory)),
                 "use fewer or smaller microbatches, recompute or offload, or another schedule"});
    }
    return check;
}

void addHeldMemory(JsonValue& json, std::span<const HeldMemory> devices)
{
    json["predicted_allocated_bytes"] = JsonValue::array();
    JsonValue kept;
    for (const char* part : {"gaps", "maths", "text", "links"})
        kept[part] = JsonValue::array();
    for (const HeldMemory& device : devices) {
        json["predicted_allocated_bytes"].push_back(device.total());
        kept["gaps"].push_back(device.gaps);
        kept["maths"].push_back(device.maths);
        kept["text"].push_back(device.text);
        kept["links"].push_back(device.links);
    }
    json["kept_bytes"] = std::move(kept); // the part of the predicted bytes beyond the peak
}

std::string keptParts(std::span<const HeldMemory> devices)
{
    constexpr std::pair<Bytes HeldMemory::*, const char*> parts[] = {{&HeldMemory::maths, "for their maths"},
                                                                     {&HeldMemory::text, "of text and losses"},
                                                                     {&HeldMemory::links, "for links"},
                                                                     {&HeldMemory::gaps, "of gaps between buffers"}};
    std::string text;
    for (const auto& [part, name] : parts) {
        Bytes most = 0;
        for (const HeldMemory& device : devices)
            most = std::max(most, device.*part);
        if (most > 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", formatSize(most), name);
    }
    return text;
}

} // namespace pipewright
