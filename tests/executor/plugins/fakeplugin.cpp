// SPDX-License-Identifier: GPL-3.0-or-later
// Plugins for the loader's tests, right and wrong ones; which is decided when it is compiled.
#include "executor/cuda/table.h"

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
template <typename... Arguments>
int nothing(Arguments...)
{
    return 0;
}

const PipewrightCudaTable table{FAKE_ABI,
                                FAKE_SIZE,
                                [] { return "pretended"; },
                                [] { return "there is none"; },
                                absent,
                                info,
                                nothing,
                                nothing,
                                nothing,
                                nothing,
                                nothing,
                                nothing,
                                nothing,
                                nothing,
                                nothing,
                                nothing,
                                nothing,
                                FAKE_COPY};

} // namespace

extern "C" __attribute__((visibility("default"))) const PipewrightCudaTable* FAKE_ENTRY()
{
    return &table;
}
