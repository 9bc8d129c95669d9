// SPDX-License-Identifier: GPL-3.0-or-later
// Totals of a stretch of an imported trace: by name, and by lane with its busy share. Slices are clipped to the
// stretch. O(slices in the stretch).
#pragma once

#include "traces/store/activitystore.h"

#include <functional>
#include <vector>

namespace pipewright {

struct NameSummary {
    std::uint32_t name = 0;
    ActivityKind kind = ActivityKind::Other;
    std::int64_t count = 0;
    Nanoseconds total = 0, longest = 0;
    std::size_t longestTrack = 0, longestSlice = 0;
};

struct LaneSummary {
    std::uint32_t lane = 0;
    std::int64_t slices = 0;
    Nanoseconds busy = 0; ///< in which at least one slice runs
    double share = 0;     ///< of the stretch
    std::size_t firstTrack = 0;
};

struct ActivitySummary {
    Nanoseconds from = 0, to = 0;
    std::vector<NameSummary> names; ///< longest total first
    std::vector<LaneSummary> lanes; ///< as in the trace; lanes without a slice in the stretch too
};

/// `stopped` is polled; when true, the totals so far are returned.
ActivitySummary summarise(const StoredActivities& trace, Nanoseconds from, Nanoseconds to,
                          const std::function<bool()>& stopped = {});

} // namespace pipewright
