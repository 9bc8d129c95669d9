// SPDX-License-Identifier: GPL-3.0-or-later
// A measured step that can be run again with a change: every task keeps its duration and its lag, the time from the end
// of its last dependency to its own start. Run unchanged it gives exactly the measured times; with one cause removed it
// tells what that cause had cost. One pass of the Evaluator.
#pragma once

#include "core/predict/evaluator.h"

#include <span>
#include <vector>

namespace pipewright {

class Replay {
public:
    /// `predicted`: durations per task. A task without a record gets its predicted duration, cut off where what waits
    /// for it started earlier. Keeps a reference to `program`. O(tasks).
    Replay(const Program& program, const Timeline& measured, const std::vector<Nanoseconds>& predicted);

    const Timeline& measured() const { return m_measured; } ///< with every task filled in
    bool recorded(TaskId task) const { return m_recorded[task]; }
    /// Whether the blocks that the task waits for were recorded, so that its lag means something. Transfers that are
    /// missing are no obstacle: traces of other tools have none.
    bool knowsInputs(TaskId task) const;
    /// The part of the time before a task in which only its earliest start (a pin) held it up.
    Nanoseconds pinWait(TaskId task) const;
    /// When the task could have begun in a timeline, its pin included.
    Nanoseconds ready(TaskId task, const Timeline& timeline) const { return m_evaluator.ready(task, timeline); }
    std::span<const Program::ExtraDependency> extras(TaskId task) const { return m_evaluator.extras(task); }

    std::vector<Nanoseconds> duration; ///< per task, as measured
    std::vector<Nanoseconds> lag;      ///< per task: start - ready; negative where clocks disagree

    Timeline run(const std::vector<Nanoseconds>& durations, const std::vector<Nanoseconds>& lags) const;
    Nanoseconds makespan(const std::vector<Nanoseconds>& durations, const std::vector<Nanoseconds>& lags) const;
    Nanoseconds makespan() const { return makespan(duration, lag); }

private:
    const Program& m_program;
    Evaluator m_evaluator;
    Timeline m_measured;
    std::vector<bool> m_recorded;
};

/// Whether the task occupies a link and not its device: a transfer, a copy to the host's memory, or a sum of gradients
/// with another device.
inline bool usesLink(const Task& task)
{
    return moves(task.kind) || task.joinsTwoDevices();
}

/// Last end minus first start.
Nanoseconds lengthOf(const Timeline& timeline);

} // namespace pipewright
