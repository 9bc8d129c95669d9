// SPDX-License-Identifier: GPL-3.0-or-later
// What connects two GPUs of this machine, as the driver's own library NVML knows it: NVLink, a PCIe switch, a host
// bridge, or the way between NUMA nodes. It is opened at run time like the driver, of which it is a part; without it
// all connections are Unknown, and `reason` says why.
#pragma once

#include "executor/cuda/table.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// The closest connection between two GPUs.
enum class GpuWire { Unknown, NvLink, Board, PcieSwitch, PcieSwitches, HostBridge, NumaNode, NumaNodes };

std::string_view nameOf(GpuWire wire); ///< "PCIe switch"; "GPU to GPU" for Unknown

struct GpuWires {
    std::vector<std::vector<GpuWire>> between; ///< between[from][to]
    std::string reason;                        ///< why some are unknown; else empty
};

/// `library`: its path, or a name that the system finds; tests use a stand-in.
GpuWires gpuWires(const std::vector<PipewrightCudaDevice>& gpus, const std::string& library = "libnvidia-ml.so.1");

} // namespace pipewright
