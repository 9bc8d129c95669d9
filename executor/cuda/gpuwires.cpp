// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/gpuwires.h"

#include <cstddef>
#include <dlfcn.h>
#include <fmt/format.h>

namespace pipewright {

namespace {

/// NVML's interface is C and these constants are fixed (NVML API Reference: nvmlGpuP2PCapsIndex_t, nvmlGpuP2PStatus_t,
/// nvmlGpuTopologyLevel_t), so its header is not needed.
constexpr int success = 0, overNvLink = 2, available = 0;

GpuWire ofCommonAncestor(int level)
{
    switch (level) {
    case 0: return GpuWire::Board;
    case 10: return GpuWire::PcieSwitch;
    case 20: return GpuWire::PcieSwitches;
    case 30: return GpuWire::HostBridge;
    case 40: return GpuWire::NumaNode;
    case 50: return GpuWire::NumaNodes;
    default: return GpuWire::Unknown;
    }
}

/// An initialised NVML; the destructor shuts it down.
class Nvml {
public:
    explicit Nvml(const std::string& name)
    {
        m_library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); // never closed, like every library of the driver
        if (!m_library) {
            reason = name + " was not found";
            return;
        }
        const bool whole = find(m_begin, "nvmlInit_v2") && find(m_end, "nvmlShutdown")
                           && find(m_deviceAt, "nvmlDeviceGetHandleByPciBusId_v2")
                           && find(m_reach, "nvmlDeviceGetP2PStatus")
                           && find(m_ancestor, "nvmlDeviceGetTopologyCommonAncestor");
        if (!whole) {
            reason = name + " lacks functions that are needed";
        } else if (const int code = m_begin(); code != success) {
            reason = fmt::format("{} cannot begin (error {})", name, code);
        } else {
            m_begun = true;
        }
    }
    ~Nvml()
    {
        if (m_begun)
            m_end();
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    using Device = void*;
    Device deviceAt(const char* busId)
    {
        Device device = nullptr;
        const int code = m_deviceAt(busId, &device);
        if (code != success)
            reason = fmt::format("NVML does not know the GPU at {} (error {})", busId, code);
        return code == success ? device : nullptr;
    }
    GpuWire between(Device a, Device b)
    {
        int status = available + 1, level = -1;
        if (m_reach(a, b, overNvLink, &status) == success && status == available)
            return GpuWire::NvLink;
        if (const int code = m_ancestor(a, b, &level); code != success) {
            reason = fmt::format("NVML does not say how GPUs are connected (error {})", code);
            return GpuWire::Unknown;
        }
        return ofCommonAncestor(level);
    }

    std::string reason; ///< the last failure

private:
    template<typename Function>
    bool find(Function*& function, const char* name)
    {
        function = reinterpret_cast<Function*>(dlsym(m_library, name));
        return function != nullptr;
    }

    void* m_library = nullptr;
    bool m_begun = false;
    int (*m_begin)() = nullptr;
    int (*m_end)() = nullptr;
    int (*m_deviceAt)(const char*, Device*) = nullptr;
    int (*m_reach)(Device, Device, int, int*) = nullptr;
    int (*m_ancestor)(Device, Device, int*) = nullptr;
};

} // namespace

std::string_view nameOf(GpuWire wire)
{
    switch (wire) {
    case GpuWire::Unknown: return "GPU to GPU";
    case GpuWire::NvLink: return "NVLink";
    case GpuWire::Board: return "one board";
    case GpuWire::PcieSwitch: return "PCIe switch";
    case GpuWire::PcieSwitches: return "several PCIe switches";
    case GpuWire::HostBridge: return "PCIe host bridge";
    case GpuWire::NumaNode: return "host bridges of one NUMA node";
    case GpuWire::NumaNodes: return "link between NUMA nodes";
    }
    return {};
}

GpuWires gpuWires(const std::vector<PipewrightCudaDevice>& gpus, const std::string& library)
{
    GpuWires wires{std::vector(gpus.size(), std::vector(gpus.size(), GpuWire::Unknown)), {}};
    if (gpus.size() < 2)
        return wires;
    Nvml nvml(library);
    std::vector<Nvml::Device> devices;
    for (std::size_t i = 0; i < gpus.size() && nvml.reason.empty(); ++i)
        devices.push_back(nvml.deviceAt(gpus[i].busId));
    for (std::size_t a = 0; a < gpus.size() && nvml.reason.empty(); ++a)
        for (std::size_t b = 0; b < gpus.size(); ++b)
            if (a != b)
                wires.between[a][b] = nvml.between(devices[a], devices[b]);
    wires.reason = nvml.reason;
    return wires;
}

} // namespace pipewright
