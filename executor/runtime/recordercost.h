// SPDX-License-Identifier: GPL-3.0-or-later
// What recording took, which is part of what is measured, so it stands beside it: of the recorder of the GPUs its own
// records of flushing buffers and the like; of PyTorch's profiler a step with it and one without.
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
