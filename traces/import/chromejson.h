// SPDX-License-Identifier: GPL-3.0-or-later
// Chrome trace JSON, the format of PyTorch's profiler (Kineto) and of many others, plain or gzip, read as a stream of
// events, so that only slices need memory. Times are decimal microseconds and are read as text, exactly to the
// nanosecond. Events that overlap, lack their beginning or end, or hold invalid bytes are imported as far as possible
// and counted (ImportReport). Of an event's arguments only those in ActivityDetail are kept.
#pragma once

#include "traces/import/bytesource.h"
#include "traces/store/activity.h"
#include "traces/store/progress.h"

#include <optional>

namespace pipewright {

/// `where` names the source in diagnostics, and gives the rank when the trace does not ("…rank3.json"). Throws Error
/// when this is not a Chrome trace or has no slice.
TraceData importChromeJson(ByteSource& source, const std::string& where, const WorkProgress& progress = {});

/// Microseconds such as "12.345", "1.5e3", "-7" as nanoseconds, rounded to the nearest; nothing when it is not a number
/// or too large.
std::optional<Nanoseconds> parseMicroseconds(std::string_view text);

/// The number in "…rank3…", "…rank-3…", "…rank_3…"; nothing when there is none.
std::optional<int> rankInName(std::string_view name);

} // namespace pipewright
