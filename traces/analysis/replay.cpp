// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/replay.h"

#include <algorithm>

namespace pipewright {

Replay::Replay(const Program& program, const Timeline& measured, const std::vector<Nanoseconds>& predicted)
    : m_program(program), m_evaluator(program, Evaluator::Times::Measured), m_measured(measured)
{
    const std::size_t count = program.tasks.size();
    m_recorded.resize(count);

    // Per task the earliest start of the tasks that wait for it.
    std::vector<Nanoseconds> neededAt(count, notRun);
    const auto need = [&](TaskId task, TaskId after) {
        if (after != none && measured.start[task] != notRun)
            neededAt[after] =
                neededAt[after] == notRun ? measured.start[task] : std::min(neededAt[after], measured.start[task]);
    };
    for (TaskId t = 0; t < count; ++t) {
        need(t, program.afterData[t]);
        need(t, program.afterOnDevice[t]);
    }
    for (const Program::ExtraDependency& extra : program.extraDependencies)
        need(extra.task, extra.after);

    duration.resize(count);
    lag.resize(count);
    Nanoseconds first = notRun;
    for (const Nanoseconds start : measured.start)
        first = start == notRun ? first : first == notRun ? start : std::min(first, start);
    for (TaskId t = 0; t < count; ++t) {
        m_recorded[t] = measured.start[t] != notRun;
        Nanoseconds from = m_evaluator.ready(t, m_measured);
        if (m_recorded[t]) {
            // For a task without dependencies `from` is the beginning of the step.
            lag[t] = m_measured.start[t] - from;
        } else {
            from = std::max(from, first == notRun ? 0 : first);
            Nanoseconds length = predicted[t];
            if (neededAt[t] != notRun)
                length = std::clamp<Nanoseconds>(neededAt[t] - from, 0, length);
            m_measured.start[t] = from;
            m_measured.end[t] = from + length;
            lag[t] = from - m_evaluator.ready(t, m_measured);
        }
        duration[t] = m_measured.end[t] - m_measured.start[t];
    }
}

bool Replay::knowsInputs(TaskId task) const
{
    const auto known = [&](TaskId input) {
        if (input != none && moves(m_program.tasks[input].kind))
            input = m_recorded[input] ? none : m_program.afterData[input]; // its producer, where it has one
        return input == none || m_recorded[input];
    };
    if (!known(m_program.afterOnDevice[task]) || !known(m_program.afterData[task]))
        return false;
    const auto extras = m_evaluator.extras(task);
    return std::all_of(extras.begin(), extras.end(),
                       [&](const Program::ExtraDependency& extra) { return known(extra.after); });
}

Nanoseconds Replay::pinWait(TaskId task) const
{
    Nanoseconds pin = 0, others = 0;
    for (const TaskId input : {m_program.afterOnDevice[task], m_program.afterData[task]})
        if (input != none)
            others = std::max(others, m_measured.end[input]);
    for (const Program::ExtraDependency& extra : m_evaluator.extras(task)) {
        pin = std::max(pin, extra.earliestStart);
        if (extra.after != none)
            others =
                std::max(others, extra.when == Program::ExtraDependency::When::Ended ? m_measured.end[extra.after]
                                                                                     : m_measured.start[extra.after]);
    }
    return std::clamp<Nanoseconds>(pin - others, 0, std::max<Nanoseconds>(0, m_measured.start[task] - others));
}

Timeline Replay::run(const std::vector<Nanoseconds>& durations, const std::vector<Nanoseconds>& lags) const
{
    Timeline timeline;
    m_evaluator.evaluate(durations, lags, timeline);
    return timeline;
}

Nanoseconds Replay::makespan(const std::vector<Nanoseconds>& durations, const std::vector<Nanoseconds>& lags) const
{
    return lengthOf(run(durations, lags));
}

Nanoseconds lengthOf(const Timeline& timeline)
{
    Nanoseconds first = notRun, last = notRun;
    for (std::size_t t = 0; t < timeline.start.size(); ++t) {
        if (timeline.start[t] == notRun)
            continue;
        first = first == notRun ? timeline.start[t] : std::min(first, timeline.start[t]);
        last = std::max(last, timeline.end[t]);
    }
    return first == notRun ? 0 : last - first;
}

} // namespace pipewright
