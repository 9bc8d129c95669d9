// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/criticalpath.h"

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

/// Calls visit(predecessor) for everything that task t waits for, its device's predecessor first.
template<typename Visit>
void forEachPredecessor(const Program& program, TaskId t, Visit visit)
{
    if (program.afterOnDevice[t] != none)
        visit(program.afterOnDevice[t]);
    if (program.afterData[t] != none)
        visit(program.afterData[t]);
    const auto& extras = program.extraDependencies;
    if (extras.empty())
        return;
    auto extra = std::lower_bound(extras.begin(), extras.end(), t,
                                  [](const Program::ExtraDependency& e, TaskId task) { return e.task < task; });
    for (; extra != extras.end() && extra->task == t; ++extra)
        if (extra->after != none)
            visit(extra->after);
}

} // namespace

std::vector<TaskId> criticalPath(const Program& program, const Timeline& timeline)
{
    std::vector<TaskId> path;
    TaskId last = none;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (timeline.start[t] != notRun && (last == none || timeline.end[t] > timeline.end[last]))
            last = t;
    while (last != none) {
        path.push_back(last);
        TaskId latest = none;
        forEachPredecessor(program, last, [&](TaskId p) {
            if (timeline.start[p] != notRun && (latest == none || timeline.end[p] > timeline.end[latest]))
                latest = p;
        });
        // Nothing that ends at the start explains it but time itself (a pin, or the beginning).
        if (latest != none && timeline.end[latest] <= 0 && timeline.start[last] == 0)
            latest = none;
        last = latest;
    }
    std::reverse(path.begin(), path.end());
    return path;
}

std::vector<Nanoseconds> slack(const Program& program, const Timeline& timeline)
{
    const std::size_t count = program.tasks.size();
    Nanoseconds finish = 0;
    for (const Nanoseconds end : timeline.end)
        finish = std::max(finish, end);
    std::vector<Nanoseconds> latestEnd(count, finish);
    for (TaskId t = static_cast<TaskId>(count); t-- > 0;) {
        const Nanoseconds latestStart = latestEnd[t] - (timeline.end[t] - timeline.start[t]);
        forEachPredecessor(program, t, [&](TaskId p) { latestEnd[p] = std::min(latestEnd[p], latestStart); });
    }
    for (TaskId t = 0; t < count; ++t)
        latestEnd[t] -= timeline.end[t];
    return latestEnd;
}

} // namespace pipewright
