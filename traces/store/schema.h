// SPDX-License-Identifier: GPL-3.0-or-later
// The tables of a trace, and how a file is recognised as one. Columns carry the names that Nsight Systems exports where
// the meaning is the same (start, end, deviceId, bytes, utcEpochNs; META is its name/value table), so queries written
// for one read naturally on the other.
//
//   META     name, value                schema version, backend, maths, design, result, dropped records
//   DEVICES  deviceId, name, peakBytes  peakBytes is NULL until the run has finished
//   TASKS    taskId, kind, op, stage …  the dictionary: one row per task of the Program
//   RECORDS  step, taskId, deviceId …   one row per task that ran, clustered by step then task
//   STEPS    step, start, end, loss,    one row per finished step; loss is NULL when there is none
//            coreWait                   how long a device's thread waited for a core, on average; NULL: not known
//   MEMORY   step, deviceId, start …    live bytes from `start` on
//
// A trace of another tool (activitystore.h), and a run that CUPTI or PyTorch's profiler recorded (gputables.h), has the
// following tables if it has data for them, as in Nsight's exports; names are numbers of StringIds:
//
//   LANES          streams and threads that the slices lie on; taskDeviceId: the device of the design (a run's only)
//   CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _RUNTIME, _SYNCHRONIZATION, NVTX_EVENTS, PROFILER_OVERHEAD, SLICES
//
// In a run's they end with step and taskId (NULL: outside of every block), and their times are those of RECORDS;
// CUDA_GPU_MEMORY_USAGE_EVENTS says what was allocated (bytes > 0) and released (bytes < 0). In another tool's trace
// times count from META's utcEpochNs, and there are also
//
//   SKIPPED, CLOCKS, FLOWS, COUNTERS, COMMUNICATIONS    what else was found
//   SLICE_CHUNKS   the same slices once more as packed arrays per lane and row, so that millions open in a second
//
// with META, DEVICES, TASKS, RECORDS, STEPS and MEMORY for the blocks that were recognised.
#pragma once

#include "core/program/program.h"

#include <string_view>

namespace pipewright::traceschema {

inline constexpr int version = 2;                ///< PRAGMA user_version, and META's schemaVersion
inline constexpr int applicationId = 0x50575254; ///< PRAGMA application_id: "PWRT"

extern const char* const createTables;
extern const char* const createLaneTables;     ///< of imported traces, and of runs that CUPTI recorded
extern const char* const createGpuMemoryTable; ///< of the latter
extern const char* const createActivityTables; ///< those that every imported trace has

inline constexpr int warned =
    2; ///< in SKIPPED's column "lost": a doubt about the whole trace; 1: left out, 0: repaired

} // namespace pipewright::traceschema
