// SPDX-License-Identifier: GPL-3.0-or-later
// The predictor: start and end of every task of a fixed order, as one longest-path pass over flat
// arrays in topological order. Transfers overlap with compute and do not contend, unless the costs make them blocking
// or let them share a bus; the order on a bus is simulated (busqueues.h). A block begins when its device is free and
// its inputs have arrived, plus the host gap (Costs::hostGaps). A block without predecessors begins with the step.
//
// The same pass is used for a preview, which changes a few edges and continues from the first changed task, and for the
// replay of a measured step, which has its own durations and lags.
#pragma once

#include "core/design/costs.h"
#include "core/predict/busqueues.h"

#include <algorithm>
#include <optional>
#include <span>

namespace pipewright {

class Evaluator {
public:
    /// Planned: tasks also wait for buses. Measured: they do not, since measured lags include these waits.
    enum class Times { Planned, Measured };
    struct Node {
        TaskId after[2]; ///< in the device's order, and for data; the task itself if none
        Nanoseconds duration = 0;
    };

    /// With durations of 0. Keeps a reference to `program`, which must outlive it; its extraDependencies may change
    /// later, but not which tasks have how many. O(tasks).
    explicit Evaluator(const Program& program, Times times = Times::Planned);
    Evaluator(const Program& program, const Costs& costs) : Evaluator(program) { setCosts(costs); }
    /// New durations, same order. O(tasks).
    void setCosts(const Costs& costs);
    /// Sets one duration per task, for member programs (program/memberprogram.h).
    void setDurations(std::span<const Nanoseconds> durations);
    /// Fills timeline.start and timeline.end; leaves timeline.memory alone. Allocates nothing when the
    /// timeline already has the right size. O(tasks), about 1 ns each; with buses about 20 ns each, and temporary
    /// memory.
    void evaluate(Timeline& timeline) const;
    /// The same from task `first` on; the tasks before it keep their times. Not valid with buses, where later tasks can
    /// affect earlier ones.
    void evaluateFrom(TaskId first, Timeline& timeline) const;
    /// With other durations, and with every task delayed by its lag (which may be negative).
    void evaluate(std::span<const Nanoseconds> durations, std::span<const Nanoseconds> lags, Timeline& timeline) const;

    /// The time at which all inputs of the task are ready, at least 0. A task with a negative end in `timeline` has not
    /// run and is not waited for: `unfinished`, when given, is set to the last such input.
    Nanoseconds ready(TaskId task, const Timeline& timeline, TaskId* unfinished = nullptr) const;
    Nanoseconds duration(TaskId task) const { return m_nodes[task].duration; }
    /// The start of a task that is ready at `ready`: later by the host gap, unless it has no predecessors.
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
    if (extra.after == none)
        return extra.earliestStart;
    switch (extra.when) {
    case When::Ended: return std::max(extra.earliestStart, timeline.end[extra.after]);
    case When::Started: return std::max(extra.earliestStart, timeline.start[extra.after]);
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
