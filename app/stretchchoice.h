// SPDX-License-Identifier: GPL-3.0-or-later
// The stretch of another tool's trace that a command uses: a profiler step, from one time to another, or the stretch of
// the devices' activity.
#pragma once

#include "app/command.h"
#include "traces/analysis/devicetime.h"

#include <string>

namespace pipewright::app {

struct StretchChoice {
    std::string from, to; ///< as given

    /// The options --from and --to; `end`: another name for --to, where that has another meaning.
    void addTo(CLI::App& command, const std::string& end = "--to");
    bool given() const { return !from.empty() || !to.empty(); }
    /// `step`: the number of a ProfilerStep#N; negative: none. Throws Error with `path` when there is no such stretch.
    TraceStep of(const StoredActivities& trace, const std::string& path, int step = -1) const;
};

} // namespace pipewright::app
