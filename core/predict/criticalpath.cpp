// SPDX-License-Identifier: GPL-3.0-or-later
// The critical path method: from the last end back along the dependency that each start waited for; slack by a
// backward pass of latest ends. O(tasks + dependencies).
#include "core/predict/criticalpath.h"

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

using When = Program::ExtraDependency::When;

/// Calls visit(predecessor, what of it is waited for) for everything that task t waits for, its device's
/// predecessor first.
template<typename Visit>
void forEachPredecessor(const Program& program, TaskId t, Visit visit)
{
    if (program.afterOnDevice[t] != none)
        visit(program.afterOnDevice[t], When::Ended);
    if (program.afterData[t] != none)
        visit(program.afterData[t], When::Ended);
    const auto& extras = program.extraDependencies;
    if (extras.empty())
        return;
    auto extra = std::lower_bound(extras.begin(), extras.end(), t,
                                  [](const Program::ExtraDependency& e, TaskId task) { return e.task < task; });
    for (; extra != extras.end() && extra->task == t; ++extra)
        if (extra->after != none)
            visit(extra->after, extra->when);
}

/// How long after all that it waited for the task began: the host's gap.
Nanoseconds gapBefore(const Program& program, const Timeline& timeline, TaskId t)
{
    Nanoseconds ready = notRun;
    forEachPredecessor(program, t, [&](TaskId p, When when) {
        ready = std::max(ready, when == When::Started ? timeline.start[p] : timeline.end[p]);
    });
    const auto& extras = program.extraDependencies;
    for (auto extra = std::lower_bound(extras.begin(), extras.end(), t,
                                       [](const Program::ExtraDependency&e, TaskId task) { return e.task < task; });
         extra != extras.end() && extra->task == t; ++extra)
        ready = std::max(ready, extra->earliestStart);
    return ready == notRun ? 0 : std::max<Nanoseconds>(0, timeline.start[t] - ready);
}

} // namespace

std::vector<TaskId> criticalPath(const Program& program, const Timeline& timeline)
{
    std::vector<TaskId> path;
    TaskId last = none;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (timeline.start[t] != notRun && (last == none || timeline.end[t] > timeline.end[last]))
            last = t;
    const auto firstOfPair = [&](TaskId t) {
        forEachPredecessor(program, t, [&](TaskId p, When when) { t = when == When::Started ? p : t; });
        return t;
    };
    while (last != none) {
        last = firstOfPair(last);
        path.push_back(last);
        TaskId latest = none;
        Nanoseconds latestReached = 0;
        // An overlapped pair goes by its first block, which waits for what the second waits for.
        forEachPredecessor(program, last, [&](TaskId p, When when) {
            if (timeline.start[p] == notRun || when == When::Started)
                return;
            // A transfer that has left the shared link may still be under way.
            const Nanoseconds reached =
                when == When::LinkFree ? std::min(timeline.end[p], timeline.start[last]) : timeline.end[p];
            if (latest == none || reached > latestReached) {
                latest = p;
                latestReached = reached;
            }
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
        const Nanoseconds latestStart =
            latestEnd[t] - (timeline.end[t] - timeline.start[t]) - gapBefore(program, timeline, t);
        forEachPredecessor(program, t, [&](TaskId p, When when) {
            Nanoseconds limit = latestStart;
            if (when == When::Started) // a pair ends together
                limit = latestEnd[t];
            else if (when == When::LinkFree) // the link's latency runs on beside t
                limit += std::max<Nanoseconds>(0, timeline.end[p] - timeline.start[t]);
            latestEnd[p] = std::min(latestEnd[p], limit);
        });
    }
    for (const Program::Overlap& pair : program.overlaps)
        latestEnd[pair.second] = std::min(latestEnd[pair.second], latestEnd[pair.first]);
    for (TaskId t = 0; t < count; ++t)
        latestEnd[t] -= timeline.end[t];
    return latestEnd;
}

} // namespace pipewright
