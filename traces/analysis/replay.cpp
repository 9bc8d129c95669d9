// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/replay.h"

#include <algorithm>

namespace pipewright {

Replay::Replay(const Program& program, const Timeline& measured, const std::vector<Nanoseconds>& predicted)
    : m_evaluator(program, Evaluator::Times::Measured), m_measured(measured)
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
    for (TaskId t = 0; t < count; ++t)
        need(t, program.afterData[t]);
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
            Nanoseconds length = moves(program.tasks[t].kind) ? predicted[t] : 0;
            if (neededAt[t] != notRun)
                length = std::clamp<Nanoseconds>(neededAt[t] - from, 0, length);
            m_measured.start[t] = from;
            m_measured.end[t] = from + length;
            lag[t] = from - m_evaluator.ready(t, m_measured);
        }
        duration[t] = m_measured.end[t] - m_measured.start[t];
    }
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
