// SPDX-License-Identifier: GPL-3.0-or-later
// The name of a device for people, the same on screen and in pictures.
#pragma once

#include "core/cluster/cluster.h"

#include <string>
#include <string_view>

namespace pipewright {

/// DeviceSpec::name where costs were given without a cluster.
inline constexpr std::string_view unknownDevice = "device";

/// "GPU 2"; "CPU 2" where the device is a thread of a CPU or a group of such; "device 2" where the design has costs
/// that were given without a cluster.
std::string deviceName(const Cluster& cluster, int device);

} // namespace pipewright
