// SPDX-License-Identifier: GPL-3.0-or-later
// A measured step as something that can be run again with a change: every task keeps how long it took and how much
// later it began than the last of what it waits for had ended. Run unchanged it gives the measured times back exactly;
// with one cause put right it says what that cause had cost. One pass of the Evaluator.
#pragma once

#include "core/predict/evaluator.h"

#include <vector>

namespace pipewright {

class Replay {
public:
    /// `predicted` are durations per task: a transfer without a record takes its own, as far as its consumer did not
    /// start earlier; other tasks without a record take no time. Keeps a reference to `program`. O(tasks).
    Replay(const Program& program, const Timeline& measured, const std::vector<Nanoseconds>& predicted);

    const Timeline& measured() const { return m_measured; } ///< with every task filled in
    bool recorded(TaskId task) const { return m_recorded[task]; }

    std::vector<Nanoseconds> duration; ///< per task, as measured
    std::vector<Nanoseconds> lag;      ///< per task: start - ready; below zero where clocks disagree

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
