// SPDX-License-Identifier: GPL-3.0-or-later
// An imported trace for other viewers, with the ranks on the one clock that the import put them on: a process per rank
// and GPU or host process, a track per stream or thread and nesting row, counters, and arrows where the trace has some.
// O(slices + arrows log slices).
#pragma once

#include "core/base/pieces.h"
#include "traces/analysis/devicetime.h"
#include "traces/store/activitystore.h"

namespace pipewright {

/// What lies in the stretch, at least in part. Times count from its start, or from the trace's where it is the whole.
void perfettoTrace(const StoredActivities& trace, const TraceStep& stretch, const Pieces& to);
/// The same as Chrome's JSON.
void chromeTrace(const StoredActivities& trace, const TraceStep& stretch, const Pieces& to);

/// From the first slice to the last one's end.
TraceStep wholeOf(const StoredActivities& trace);

} // namespace pipewright
