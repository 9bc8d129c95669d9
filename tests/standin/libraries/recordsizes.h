// SPDX-License-Identifier: GPL-3.0-or-later
// Sizes of CUPTI's records, by toolkit (13000: CUDA 13.0), from cupti_activity.h and, for CUDA 12, from
// cupti_activity_deprecated.h.
#pragma once

#include <cstddef>
#include <cupti.h>

namespace standin {

/// For CUDA 12, the oldest records that a libcupti.so.12 writes. Each type begins like its successor, so a record is a
/// truncated newest one.
inline std::size_t sizeOf(CUpti_ActivityKind kind, int toolkit)
{
    const bool twelve = toolkit < 13000;
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return twelve ? sizeof(CUpti_ActivityKernel9) : sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return twelve ? sizeof(CUpti_ActivityMemcpy5) : sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_MEMORY2: return twelve ? sizeof(CUpti_ActivityMemory3) : sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return twelve ? sizeof(CUpti_ActivitySynchronization) : sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return twelve ? sizeof(CUpti_ActivityOverhead2) : sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_CONTEXT: return twelve ? sizeof(CUpti_ActivityContext2) : sizeof(CUpti_ActivityContext3);
    default: return 0;
    }
}

} // namespace standin
