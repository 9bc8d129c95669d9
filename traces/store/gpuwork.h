// SPDX-License-Identifier: GPL-3.0-or-later
// The work inside the blocks of one recorded step: kernels, copies and sets of GPUs, each with the block that launched
// it and the time at which its launch call ended; for PyTorch ranks on CPUs their operators; and the recorder's
// overhead. Read by TraceReader::gpuWork().
#pragma once

#include "core/predict/timeline.h"
#include "traces/store/activity.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace SQLite {
class Database;
}

namespace pipewright {

/// The content of blocks: GPU kernels, framework operators, or the parts of blocks in a Program (of the members of a
/// group, or on two streams).
enum class WorkKind : std::uint8_t { Kernels, Operators, Parts };
std::string_view nameOf(WorkKind kind); ///< "kernels", "operators", "parts"

struct GpuWork {
    static constexpr Nanoseconds unknown = std::numeric_limits<Nanoseconds>::min();

    struct Slice {
        ActivityKind kind = ActivityKind::Kernel; ///< Kernel, Memcpy, Memset or Operator
        TaskId task = none;                       ///< of the requested program; none: outside of every block
        Nanoseconds start = 0, end = 0;           ///< since the step's start, as a Timeline's
        Nanoseconds launched = unknown;           ///< when the call that launched it was done; unknown: not recorded
        std::uint32_t name = 0;                   ///< into `names`
        std::uint32_t lane = 0;                   ///< the same for all of one stream
        int rank = 0, gpu = 0;                    ///< the process, and the GPU as it numbers them
        int device = -1;                          ///< of the design; -1: not known
        Bytes bytes = -1;                         ///< of copies and sets
    };
    WorkKind kind = WorkKind::Kernels;
    std::vector<Slice> slices; ///< by start
    std::vector<std::string> names;

    // CUPTI's own work, which is part of what was measured.
    Nanoseconds overhead = 0;
    std::int64_t overheads = 0;

    bool empty() const { return slices.empty(); }
};

/// The kind of recorded work of a Pipewright run; nothing if none was recorded, the first if there are several.
std::optional<WorkKind> recordedWork(SQLite::Database& database);

/// `ids`: for each task of the recording its id in the program. Throws Error.
GpuWork readGpuWork(SQLite::Database& database, const std::string& path, int step, Nanoseconds origin,
                    const std::vector<TaskId>& ids);

/// First start and last end of every task's slices; notRun of tasks without any.
Timeline spansOf(const GpuWork& work, std::size_t tasks);

} // namespace pipewright
