// SPDX-License-Identifier: GPL-3.0-or-later
// What connects two GPUs of this machine, as the driver's own library NVML knows it: NVLink, a PCIe switch, a host
// bridge, or the way between NUMA nodes. Opened at run time like the driver, of which it is a part; where it is
// missing, the ways are not told apart, and why stands in `reason`.
#pragma once

#include "executor/cuda/table.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// The nearest thing that a message between two GPUs passes.
enum class GpuWire { Unknown, NvLink, Board, PcieSwitch, PcieSwitches, HostBridge, NumaNode, NumaNodes };

std::string_view nameOf(GpuWire wire); ///< "PCIe switch"; of an unknown one "GPU to GPU"

struct GpuWires {
    std::vector<std::vector<GpuWire>> between; ///< GPU by GPU, each way
    std::string reason;                        ///< why some are unknown; else empty
};

/// `library`: its path, or a name that the system finds; a test has another.
GpuWires gpuWires(const std::vector<PipewrightCudaDevice>& gpus, const std::string& library = "libnvidia-ml.so.1");

} // namespace pipewright
