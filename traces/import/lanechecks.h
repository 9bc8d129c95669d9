// SPDX-License-Identifier: GPL-3.0-or-later
// What is wrong with the lanes of a trace, once all of it is read: work of a stream that overlaps, and lanes of no kind
// that is known. Both become warnings of the import, with their time.
#pragma once

#include "traces/store/activity.h"

namespace pipewright {

/// A stream does one thing after the other, so each kernel, copy or memory set that lasts beyond the start of the next
/// one is ended there; a wrong end would be counted as work of the device. Work of one CUDA graph may overlap and
/// stays. O(slices + n log n) for n kernels and copies.
void clipToNextStart(TraceData& data);

/// Names the lanes whose slices are all of kinds that are not known (TraceLane::unknown), such as those of accelerators
/// that no category of PyTorch's profiler tells, with the time in which something runs on them. Nothing counts it.
/// O(slices + n log n) for n slices of such lanes.
void nameUnknownLanes(TraceData& data);

} // namespace pipewright
