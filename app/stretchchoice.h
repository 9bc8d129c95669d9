// SPDX-License-Identifier: GPL-3.0-or-later
// The stretch of another tool's trace that a command looks at: a profiler step, from one time to another, or what the
// devices' activity covers.
#pragma once

#include "app/command.h"
#include "traces/analysis/devicetime.h"

#include <string>

namespace pipewright::app {

struct StretchChoice {
    std::string from, to; ///< as given

    /// The options --from and --to; `end`: another name for the latter, where that means something else.
    void addTo(Command command, const std::string& end = "--to");
    bool given() const { return !from.empty() || !to.empty(); }
    /// `step`: a number of ProfilerStep#N, or below 0. Throws Error with `path` when there is no such stretch.
    TraceStep of(const StoredActivities& trace, const std::string& path, int step = -1) const;
};

} // namespace pipewright::app
