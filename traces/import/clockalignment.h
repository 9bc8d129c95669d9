// SPDX-License-Identifier: GPL-3.0-or-later
// Puts recordings of several ranks on one clock. Wall clocks agree to about a millisecond, common events to a
// microsecond. For two ranks that send to each other both ways, the offset is half the difference of the medians of
// (arrival - departure), as in ping-pong measurements, so that equal latencies cancel. Otherwise the ends of the same
// collective are made to coincide. Medians are robust against late events. Ranks without common events keep their wall
// clock or, without one, their own beginning.
#pragma once

#include "traces/store/activity.h"

#include <vector>

namespace pipewright {

/// Shifts the times of all but the lowest rank and sets each trace's `clocks`. Events are matched by kind, group and
/// peer as NCCL reports them, and by their index in that series. O(events log events).
void alignClocks(std::vector<TraceData>& traces);

/// All traces in one: names merged, lanes and details renumbered, times relative to the earliest.
TraceData merged(std::vector<TraceData> traces);

} // namespace pipewright
