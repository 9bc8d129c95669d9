// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/devicename.h"

#include <algorithm>
#include <cctype>

namespace pipewright {

bool isCpu(const DeviceSpec& device)
{
    if (device.group && !device.group->devices.empty())
        return std::all_of(device.group->devices.begin(), device.group->devices.end(), isCpu);
    std::string name = device.name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return name.find("cpu") != std::string::npos || name.find("thread") != std::string::npos;
}

namespace {

// A device of a design whose costs were given without a cluster: neither a GPU nor a CPU as far as is known.
bool isOfUnknownKind(const DeviceSpec& device)
{
    return !device.group && (device.name.empty() || device.name == unknownDevice);
}

} // namespace

std::string deviceName(const Cluster& cluster, int device)
{
    const std::string number = std::to_string(device);
    if (device < 0 || device >= std::ssize(cluster.devices) || isOfUnknownKind(cluster.devices[device]))
        return "device " + number;
    return (isCpu(cluster.devices[device]) ? "CPU " : "GPU ") + number;
}

} // namespace pipewright
