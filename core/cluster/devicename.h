// SPDX-License-Identifier: GPL-3.0-or-later
// What a device's name says: the name for people, the same on screen and in pictures, and whether it is a CPU's.
#pragma once

#include "core/cluster/cluster.h"

#include <string>
#include <string_view>

namespace pipewright {

/// DeviceSpec::name where costs were given without a cluster.
inline constexpr std::string_view unknownDevice = "device";

/// By its name: a thread of a CPU, or a group of such. A cluster of them is not a cluster of GPUs, whatever else its
/// devices are called.
bool isCpu(const DeviceSpec& device);

/// "GPU 2"; "CPU 2" where the device is a thread of a CPU or a group of such; "device 2" where the design has costs
/// that were given without a cluster.
std::string deviceName(const Cluster& cluster, int device);

} // namespace pipewright
