// SPDX-License-Identifier: GPL-3.0-or-later
// An imported trace for other viewers, with all ranks on the common clock of the import: a process per rank and GPU or
// host process, a track per stream or thread and nesting row, counters, and the trace's arrows. O(slices + arrows log
// slices).
//
// Chrome's JSON is written as PyTorch's profiler writes it (categories, devices, streams, correlation of calls), with
// the rank of each process, so that importing it gives the same kinds, devices, launches and blocks. Rows of a lane
// that lie in each other share a thread. Sizes and peers of copies and collectives are not in it.
#pragma once

#include "core/base/pieces.h"
#include "traces/analysis/devicetime.h"
#include "traces/store/activitystore.h"

namespace pipewright {

/// Writes the slices that are at least partly in the stretch. Times count from the stretch's start.
void perfettoTrace(const StoredActivities& trace, const TraceStep& stretch, const Pieces& to);
/// The same as Chrome's JSON.
void chromeTrace(const StoredActivities& trace, const TraceStep& stretch, const Pieces& to);

/// The stretch from the first slice to the end of the last one.
TraceStep wholeOf(const StoredActivities& trace);

} // namespace pipewright
