// SPDX-License-Identifier: GPL-3.0-or-later
// The cost of recording, which is part of the measured times and is therefore reported with them. For the GPUs'
// recorder: its own overhead records, such as buffer flushes. For PyTorch's profiler: the time of a step with it and
// without it.
#pragma once

#include "traces/store/tracewriter.h"

#include <algorithm>
#include <span>

namespace pipewright {

struct RecorderCost {
    Nanoseconds time = 0;
    std::int64_t records = 0;
    Nanoseconds stepWith = 0, stepWithout = 0; ///< medians, of the slowest process; 0: steps without were not timed

    void add(const RecorderCost& more)
    {
        time += more.time;
        records += more.records;
        stepWith = std::max(stepWith, more.stepWith);
        stepWithout = std::max(stepWithout, more.stepWithout);
    }
    void add(std::span<const GpuRecord> seen)
    {
        for (const GpuRecord& each : seen)
            if (each.kind == GpuRecord::Kind::Overhead)
                add(RecorderCost{.time = each.end - each.start, .records = 1});
    }
};

} // namespace pipewright
