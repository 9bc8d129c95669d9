// SPDX-License-Identifier: GPL-3.0-or-later
// The memory of pretended GPUs is the host's, counted.
#pragma once

#include "executor/cuda/pretendedstreams.h"
#include "executor/cuda/table.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

namespace pretended {

/// What all GPUs were asked for and have not got back.
struct Allocated {
    std::mutex mutex;
    std::map<void*, std::int64_t> sizes;
    std::int64_t now = 0, most = 0;
};
inline Allocated& allocated()
{
    static Allocated all;
    return all;
}

inline void addMemory(PipewrightCudaTable& t)
{
    t.allocate = [](std::int32_t, std::int64_t bytes, void** data) {
        *data = std::aligned_alloc(256, (n(bytes) / 256 + 1) * 256);
        if (!*data)
            return fault("the host has not that much");
        const std::lock_guard lock(allocated().mutex);
        allocated().sizes[*data] = bytes;
        allocated().now += bytes;
        allocated().most = std::max(allocated().most, allocated().now);
        return 0;
    };
    t.release = [](std::int32_t, void* data) {
        {
            const std::lock_guard lock(allocated().mutex);
            allocated().now -= allocated().sizes[data];
            allocated().sizes.erase(data);
        }
        return std::free(data), 0;
    };
    t.allocateHost = [](std::int64_t bytes, void** data) {
        *data = std::malloc(n(bytes) + 1);
        return *data ? 0 : fault("the host has not that much");
    };
    t.releaseHost = [](void* data) { return std::free(data), 0; };
}

} // namespace pretended
