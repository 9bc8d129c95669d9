// SPDX-License-Identifier: GPL-3.0-or-later
// What the recorder of the GPUs says that it took itself: its own records of flushing buffers and the like. Part of
// what is measured, so it stands beside it.
#pragma once

#include "traces/store/tracewriter.h"

#include <span>

namespace pipewright {

struct RecorderCost {
    Nanoseconds time = 0;
    std::int64_t records = 0;

    void add(const RecorderCost& more)
    {
        time += more.time;
        records += more.records;
    }
    void add(std::span<const GpuRecord> seen)
    {
        for (const GpuRecord& each : seen)
            if (each.kind == GpuRecord::Kind::Overhead)
                add(RecorderCost{each.end - each.start, 1});
    }
};

} // namespace pipewright
