// SPDX-License-Identifier: GPL-3.0-or-later
// The predictor: start and end of every task of a fixed order, as one longest-path pass over flat
// arrays in topological order. Transfers overlap with compute and do not contend, unless the costs say that
// they block or share a bus; where they share one, a simulation says who passes it when (busqueues.h). A block begins
// when its device is free and its inputs are there, and so much later as the host needs (Costs::hostGaps); the first
// block of a step, which waits for nothing, begins with the step.
//
// The same pass serves a preview, which changes a few edges and goes on from the first task behind them, and the
// replay of a measured step, which has durations and lags of its own.
#pragma once

#include "core/design/costs.h"
#include "core/predict/busqueues.h"

#include <algorithm>
#include <optional>
#include <span>

namespace pipewright {

class Evaluator {
public:
    /// What a task waits for besides other tasks: pins and buses, unless times are measured; a measured lag
    /// has both in it.
    enum class Times { Planned, Measured };
    struct Node {
        TaskId after[2]; ///< in the device's order, and for data; the task itself where there is none
        Nanoseconds duration = 0;
    };

    /// With durations of 0. Keeps a reference to `program`, which must outlive it; its extraDependencies may change
    /// later, but not which tasks have how many. O(tasks).
    explicit Evaluator(const Program& program, Times times = Times::Planned);
    Evaluator(const Program& program, const Costs& costs) : Evaluator(program) { setCosts(costs); }
    /// New durations, same order. O(tasks).
    void setCosts(const Costs& costs);
    /// One per task: those of a member program (program/memberprogram.h).
    void setDurations(std::span<const Nanoseconds> durations);
    /// Fills timeline.start and timeline.end; leaves timeline.memory alone. Allocates nothing when the
    /// timeline already has the right size. O(tasks), about 1 ns each; with buses some twenty, and scratch memory.
    void evaluate(Timeline& timeline) const;
    /// The same from task `first` on; the tasks before it keep the times that they have. Not with buses, on which what
    /// comes later decides who passes first.
    void evaluateFrom(TaskId first, Timeline& timeline) const;
    /// With other durations, and with every task starting so much later than it could (lag, maybe below zero).
    void evaluate(std::span<const Nanoseconds> durations, std::span<const Nanoseconds> lags, Timeline& timeline) const;

    /// When all that the task waits for has happened, at least 0. A task whose end is below zero in `timeline` has
    /// not run and is not waited for: `unfinished`, where given, becomes the last such input.
    Nanoseconds ready(TaskId task, const Timeline& timeline, TaskId* unfinished = nullptr) const;
    Nanoseconds duration(TaskId task) const { return m_nodes[task].duration; }
    /// Of a task that could begin at `ready`: the host's gap later, unless it waits for nothing.
    Nanoseconds startOf(TaskId task, Nanoseconds ready) const
    {
        return m_gaps.empty() || waitsForNothing(task) ? ready : ready + m_gaps[task];
    }
    void setHostGaps(const Costs& costs);          ///< as setCosts() does
    void setHostGap(TaskId task, Nanoseconds gap); ///< where there are any
    Node& node(TaskId task) { return m_nodes[task]; }
    const Node& node(TaskId task) const { return m_nodes[task]; }
    std::span<const Program::ExtraDependency> extras(TaskId task) const;

private:
    bool waitsForNothing(TaskId task) const
    {
        return m_nodes[task].after[0] == task && m_nodes[task].after[1] == task && extras(task).empty();
    }
    Nanoseconds reached(const Program::ExtraDependency& extra, const Timeline& timeline) const;
    template<typename Start, typename Duration>
    void pass(TaskId first, Timeline& timeline, Start start, Duration duration) const;

    const Program& m_program;
    Times m_times;
    std::vector<Node> m_nodes;
    std::vector<Nanoseconds> m_gaps;         ///< per task, before it; empty: there are none
    std::vector<std::uint32_t> m_extraBegin; ///< per task and one more, into extraDependencies; empty: there are none
    std::optional<BusQueues> m_busQueues;    ///< where links share buses, and times are planned
};

inline std::span<const Program::ExtraDependency> Evaluator::extras(TaskId task) const
{
    if (m_extraBegin.empty())
        return {};
    const Program::ExtraDependency* all = m_program.extraDependencies.data();
    return {all + m_extraBegin[task], all + m_extraBegin[task + 1]};
}

inline Nanoseconds Evaluator::reached(const Program::ExtraDependency& extra, const Timeline& timeline) const
{
    using When = Program::ExtraDependency::When;
    const bool planned = m_times == Times::Planned;
    const Nanoseconds pin = planned ? extra.earliestStart : 0;
    if (extra.after == none)
        return pin;
    switch (extra.when) {
    case When::Ended: return std::max(pin, timeline.end[extra.after]);
    case When::Started: return std::max(pin, timeline.start[extra.after]);
    }
    return 0;
}

inline Nanoseconds Evaluator::ready(TaskId task, const Timeline& timeline, TaskId* unfinished) const
{
    Nanoseconds ready = 0;
    const auto see = [&](TaskId input, Nanoseconds time) {
        if (unfinished != nullptr && timeline.end[input] < 0)
            *unfinished = input;
        ready = std::max(ready, time);
    };
    for (const TaskId input : m_nodes[task].after)
        if (input != task)
            see(input, timeline.end[input]);
    for (const Program::ExtraDependency& extra : extras(task))
        if (extra.after == none)
            ready = std::max(ready, reached(extra, timeline));
        else
            see(extra.after, reached(extra, timeline));
    return ready;
}

} // namespace pipewright
