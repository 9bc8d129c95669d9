// SPDX-License-Identifier: GPL-3.0-or-later
// libnvidia-ml: how GPUs are connected. Rules from the NVML API Reference (the toolkits used here ship no header):
// enumerations "nvmlGpuTopologyLevel_t", "nvmlGpuP2PCapsIndex_t", "nvmlGpuP2PStatus_t", "nvmlReturn_t". The machine is
// one of PIPEWRIGHT_STANDIN_WIRES: "nvlink" (every pair), "pairs" (GPUs 0 and 1, 2 and 3 … by NVLink, pairs among each
// other over a host bridge), "pcie" (0 and 1, 2 and 3 … below a switch each, switches of one NUMA node by twos, and
// these over the link between nodes), or "none": the library cannot be initialised.
#include "machine.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace standin;

namespace {

enum Result { Success = 0, Uninitialized = 1, InvalidArgument = 2, NotFound = 6, DriverNotLoaded = 9 };

long begun = 0;

std::string wires()
{
    const char* text = std::getenv("PIPEWRIGHT_STANDIN_WIRES");
    return text ? text : "nvlink";
}

/// A device handle is the GPU's number plus one.
int numberOf(void* device)
{
    return static_cast<int>(reinterpret_cast<std::intptr_t>(device)) - 1;
}

Result whyNot(void* a, void* b)
{
    if (begun == 0)
        return Uninitialized; // "if the library has not been successfully initialized"
    for (void* const each : {a, b})
        if (numberOf(each) < 0 || numberOf(each) >= settings().gpus)
            return InvalidArgument;
    return Success;
}

} // namespace

extern "C" {

int nvmlInit_v2()
{
    if (wires() == "none")
        return DriverNotLoaded;
    ++begun; // "A reference count of the number of initializations is maintained"
    hold("NVML", 1);
    return Success;
}

int nvmlShutdown()
{
    if (begun == 0)
        return Uninitialized;
    --begun;
    hold("NVML", -1);
    return Success;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, void** device)
{
    if (begun == 0)
        return Uninitialized;
    unsigned domain = 0, bus = 0, place = 0, function = 0; // domain:bus:device.function, hexadecimal
    if (std::sscanf(busId, "%x:%x:%x.%x", &domain, &bus, &place, &function) != 4)
        return InvalidArgument;
    if (bus == 0 || static_cast<int>(bus) > settings().gpus) // as cudaDeviceGetPCIBusId
        return NotFound;
    *device = reinterpret_cast<void*>(std::intptr_t{bus});
    return Success;
}

int nvmlDeviceGetP2PStatus(void* a, void* b, int capability, int* status)
{
    if (const Result why = whyNot(a, b); why != Success)
        return why;
    if (capability != 2) // NVML_P2P_CAPS_INDEX_NVLINK: nothing else is asked for
        return InvalidArgument;
    const bool linked = wires() == "nvlink" || (wires() == "pairs" && numberOf(a) / 2 == numberOf(b) / 2);
    *status = linked ? 0 : 5; // NVML_P2P_STATUS_OK, NVML_P2P_STATUS_NOT_SUPPORTED
    return Success;
}

int nvmlDeviceGetTopologyCommonAncestor(void* a, void* b, int* level)
{
    if (const Result why = whyNot(a, b); why != Success)
        return why;
    const int first = numberOf(a), second = numberOf(b);
    if (first == second)
        return InvalidArgument;
    // NVML_TOPOLOGY_SINGLE, _HOSTBRIDGE, _NODE, _SYSTEM
    if (wires() != "pcie")
        *level = 30;
    else
        *level = first / 2 == second / 2 ? 10 : first / 4 == second / 4 ? 40 : 50;
    return Success;
}

} // extern "C"
