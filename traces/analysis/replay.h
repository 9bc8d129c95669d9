// SPDX-License-Identifier: GPL-3.0-or-later
// A measured step that can be run again with a change: every task keeps its duration and its lag, the time from the end
// of its last dependency to its own start. Run unchanged it gives exactly the measured times; with one cause removed it
// tells what that cause had cost. One pass of the Evaluator.
#pragma once

#include "core/predict/evaluator.h"

#include <vector>

namespace pipewright {

class Replay {
public:
    /// `predicted`: durations per task. A transfer without a record gets its predicted duration, cut off where its
    /// consumer started earlier; other tasks without a record take no time. Keeps a reference to `program`. O(tasks).
    Replay(const Program& program, const Timeline& measured, const std::vector<Nanoseconds>& predicted);

    const Timeline& measured() const { return m_measured; } ///< with every task filled in
    bool recorded(TaskId task) const { return m_recorded[task]; }

    std::vector<Nanoseconds> duration; ///< per task, as measured
    std::vector<Nanoseconds> lag;      ///< per task: start - ready; negative where clocks disagree

    Timeline run(const std::vector<Nanoseconds>& durations, const std::vector<Nanoseconds>& lags) const;
    Nanoseconds makespan(const std::vector<Nanoseconds>& durations, const std::vector<Nanoseconds>& lags) const;
    Nanoseconds makespan() const { return makespan(duration, lag); }

private:
    Evaluator m_evaluator;
    Timeline m_measured;
    std::vector<bool> m_recorded;
};

/// Last end minus first start.
Nanoseconds lengthOf(const Timeline& timeline);

} // namespace pipewright
