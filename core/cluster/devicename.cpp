// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/devicename.h"

#include <algorithm>
#include <cctype>

namespace pipewright {

std::string deviceName(const Cluster& cluster, int device)
{
    std::string name;
    if (device >= 0 && static_cast<std::size_t>(device) < cluster.devices.size())
        name = cluster.devices[static_cast<std::size_t>(device)].name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // A cluster of CPU threads is not a cluster of GPUs, whatever else its devices are called.
    const bool cpu = name.find("cpu") != std::string::npos || name.find("thread") != std::string::npos;
    return (cpu ? "CPU " : "GPU ") + std::to_string(device);
}

} // namespace pipewright
