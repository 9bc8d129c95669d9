// SPDX-License-Identifier: GPL-3.0-or-later
// What ran on the GPUs in one recorded step: kernels, copies and sets, each with the block that launched it and the
// moment its launch was done; and what recording itself took. Read by TraceReader::gpuWork().
#pragma once

#include "core/predict/timeline.h"
#include "traces/store/activity.h"

#include <limits>
#include <string>
#include <vector>

namespace SQLite {
class Database;
}

namespace pipewright {

struct GpuWork {
    static constexpr Nanoseconds unknown = std::numeric_limits<Nanoseconds>::min();

    struct Slice {
        ActivityKind kind = ActivityKind::Kernel; ///< Kernel, Memcpy or Memset
        TaskId task = none;                       ///< of the program that was asked for; none: outside of every block
        Nanoseconds start = 0, end = 0;           ///< since the step's start, as a Timeline's
        Nanoseconds launched = unknown;           ///< when the call that launched it was done; unknown: not recorded
        std::uint32_t name = 0;                   ///< into `names`
        std::uint32_t lane = 0;                   ///< the same for all of one stream
        int rank = 0, gpu = 0;                    ///< the process, and the GPU as it numbers them
        int device = -1;                          ///< of the design; -1: not known
        Bytes bytes = -1;                         ///< of copies and sets
    };
    std::vector<Slice> slices; ///< by start
    std::vector<std::string> names;

    // CUPTI's own work, which is part of what was measured.
    Nanoseconds overhead = 0;
    std::int64_t overheads = 0;

    bool empty() const { return slices.empty(); }
};

bool holdsGpuWork(SQLite::Database& database); ///< of a run of Pipewright

/// `ids`: for each task of the recording its id in the program. Throws Error.
GpuWork readGpuWork(SQLite::Database& database, const std::string& path, int step, Nanoseconds origin,
                    const std::vector<TaskId>& ids);

/// First start and last end of every task's slices; notRun of tasks without any.
Timeline spansOf(const GpuWork& work, std::size_t tasks);

} // namespace pipewright
