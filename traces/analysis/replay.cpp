// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/replay.h"

#include <algorithm>

namespace pipewright {

Replay::Replay(const Program& program, const Timeline& measured, const std::vector<Nanoseconds>& predicted)
    : m_program(program), m_measured(measured)
{
    const std::size_t count = program.tasks.size();
    m_recorded.resize(count);
    m_firstExtra.assign(count + 1, 0);
    for (const Program::ExtraDependency& extra : program.extraDependencies)
        ++m_firstExtra[extra.task + 1];
    for (std::size_t t = 0; t < count; ++t)
        m_firstExtra[t + 1] += m_firstExtra[t];

    // The earliest start among what waits for a transfer.
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
        Nanoseconds from = ready(t, m_measured);
        if (m_recorded[t]) {
            // What waits for nothing counts from the beginning of the step.
            lag[t] = m_measured.start[t] - from;
        } else {
            from = std::max(from, first == notRun ? 0 : first);
            Nanoseconds length = program.tasks[t].kind == TaskKind::Transfer ? predicted[t] : 0;
            if (neededAt[t] != notRun)
                length = std::clamp<Nanoseconds>(neededAt[t] - from, 0, length);
            m_measured.start[t] = from;
            m_measured.end[t] = from + length;
            lag[t] = from - ready(t, m_measured);
        }
        duration[t] = m_measured.end[t] - m_measured.start[t];
    }
}

Nanoseconds Replay::ready(TaskId t, const Timeline& timeline) const
{
    using When = Program::ExtraDependency::When;
    Nanoseconds ready = 0;
    if (m_program.afterOnDevice[t] != none)
        ready = std::max(ready, timeline.end[m_program.afterOnDevice[t]]);
    if (m_program.afterData[t] != none)
        ready = std::max(ready, timeline.end[m_program.afterData[t]]);
    for (std::uint32_t i = m_firstExtra[t]; i < m_firstExtra[t + 1]; ++i) {
        const Program::ExtraDependency& extra = m_program.extraDependencies[i];
        if (extra.after == none || extra.when == When::LinkFree) // how long a link was held is not recorded
            continue;
        ready = std::max(ready, extra.when == When::Started ? timeline.start[extra.after] : timeline.end[extra.after]);
    }
    return ready;
}

Timeline Replay::run(const std::vector<Nanoseconds>& durations, const std::vector<Nanoseconds>& lags) const
{
    Timeline timeline;
    const std::size_t count = m_program.tasks.size();
    timeline.start.assign(count, 0);
    timeline.end.assign(count, 0);
    for (TaskId t = 0; t < count; ++t) {
        timeline.start[t] = ready(t, timeline) + lags[t];
        timeline.end[t] = timeline.start[t] + durations[t];
    }
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
