// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings of several ranks on one clock. Wall clocks agree to a millisecond or so; what ranks did together agrees to
// the microsecond. Between two ranks that send to each other both ways the offset is half the difference of the two
// medians of (arrival - departure), as in ping-pong measurements, so that equal latencies cancel out; otherwise ends of
// the same collective coincide. Medians throughout, since a late one says nothing. Ranks without anything in common
// with another keep their wall clock, or their beginning.
#pragma once

#include "traces/store/activity.h"

#include <vector>

namespace pipewright {

/// Shifts the times of all but the lowest rank and sets each trace's `clocks`. Events are matched by what NCCL
/// says of them (kind, group, peer) and their number among their like. O(events log events).
void alignClocks(std::vector<TraceData>& traces);

/// All in one: names joined, lanes and details renumbered, times from the first of all.
TraceData merged(std::vector<TraceData> traces);

} // namespace pipewright
