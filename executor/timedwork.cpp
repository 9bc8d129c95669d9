// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/timedwork.h"

#include "core/predict/evaluator.h"
#include "executor/clock.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace pipewright {

std::vector<Nanoseconds> taskDurations(const Program& program, const Costs& costs)
{
    const Evaluator evaluator(program, costs);
    std::vector<Nanoseconds> durations;
    durations.reserve(program.tasks.size());
    for (TaskId task = 0; task < program.tasks.size(); ++task)
        durations.push_back(evaluator.duration(task));
    return durations;
}

TimedWork::TimedWork(std::vector<Nanoseconds> durations, Pace pace)
    : m_durations(std::move(durations))
    , m_pace(pace)
{
}

void TimedWork::spend(const TaskContext& context) const
{
    if (m_pace == Pace::Virtual)
        return;
    constexpr Nanoseconds slice = 5'000'000; // how late a stop may be noticed
    const Nanoseconds until = steadyNow() + m_durations[context.id];
    for (Nanoseconds left = until - steadyNow(); left > 0; left = until - steadyNow()) {
        if (context.stopped->load(std::memory_order_relaxed))
            return;
        if (m_pace == Pace::Sleep)
            std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left, slice)));
    }
}

} // namespace pipewright
