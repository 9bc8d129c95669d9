// SPDX-License-Identifier: GPL-3.0-or-later
// Plugins for the loader's tests, right and wrong ones; which is decided when it is compiled.
#include "executor/cuda/table.h"

#include <cstddef>
#include <cstring>

namespace {

int absent(int32_t* count)
{
    *count = FAKE_DEVICES;
    return FAKE_DEVICES == 0 ? 100 : 0;
}
int info(int32_t, PipewrightCudaDevice* device)
{
    *device = {};
    std::strcpy(device->name, "pretended GPU");
    device->memory = int64_t{1} << 30;
    return 0;
}
int nothing()
{
    return 0;
}

/// All that is called of these plugins is the loader's business; the rest only has to be there.
PipewrightCudaTable makeTable()
{
    PipewrightCudaTable table{};
    table.abi = FAKE_ABI;
    table.size = FAKE_SIZE;
    table.toolkit = FAKE_TOOLKIT;
    auto* entries = reinterpret_cast<int (**)()>(&table.buildInfo);
    const std::size_t count = (sizeof table - offsetof(PipewrightCudaTable, buildInfo)) / sizeof(void*);
    for (std::size_t i = 0; i < count; ++i)
        entries[i] = nothing;
    entries[(offsetof(PipewrightCudaTable, copy) - offsetof(PipewrightCudaTable, buildInfo)) / sizeof(void*)] =
        FAKE_COPY;
    table.buildInfo = [] { return "pretended"; };
    table.lastError = [] { return "there is none"; };
    table.deviceCount = absent;
    table.deviceInfo = info;
    return table;
}

} // namespace

extern "C" __attribute__((visibility("default"))) const PipewrightCudaTable* FAKE_ENTRY()
{
    static const PipewrightCudaTable table = makeTable();
    return &table;
}
