// SPDX-License-Identifier: GPL-3.0-or-later
// The memory that another tool's trace reports over time, summed up for a stretch of it.
#pragma once

#include "traces/store/activitystore.h"

#include <string>
#include <vector>

namespace pipewright {

/// What an allocator reported in a stretch.
struct CounterPeak {
    int rank = 0, device = -1;
    std::string name;
    double first = 0, highest = 0, last = 0;
    Nanoseconds highestAt = 0; ///< the stretch's beginning where the value stands from before it
};

/// Counters of bytes that have a value in the stretch. O(counters x (log values + values in the stretch)).
std::vector<CounterPeak> memoryPeaks(const StoredActivities& trace, Nanoseconds from, Nanoseconds to);

} // namespace pipewright
