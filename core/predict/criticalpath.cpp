// SPDX-License-Identifier: GPL-3.0-or-later
// The critical path method: from the last end back along the dependency that each start waited for; slack by a
// backward pass of latest ends. Transfers keep their order on a bus. O(tasks + dependencies), on buses
// O(tasks log tasks).
#include "core/predict/criticalpath.h"

#include "core/predict/busqueues.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace pipewright {

namespace {

using When = Program::ExtraDependency::When;

/// Calls visit(predecessor, When) for every predecessor of task t, the one on its device first.
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

/// The host gap: the time between the last predecessor's end and the task's start.
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

/// All tasks, each after its successors. The global sequence does not have the order of transfers on a bus.
std::vector<TaskId> backwards(const Timeline& timeline, bool byStart)
{
    std::vector<TaskId> tasks(timeline.start.size());
    std::iota(tasks.rbegin(), tasks.rend(), TaskId{0});
    if (byStart)
        std::stable_sort(tasks.begin(), tasks.end(),
                         [&](TaskId a, TaskId b) { return timeline.start[a] > timeline.start[b]; });
    return tasks;
}

} // namespace

std::vector<TaskId> criticalPath(const Program& program, const Timeline& timeline)
{
    const std::vector<TaskId> onBus = passedBefore(program, timeline);
    std::vector<char> onPath(onBus.size(), 0); // measured times may contradict each other
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
        if (!onPath.empty())
            onPath[last] = 1;
        TaskId latest = none;
        Nanoseconds latestReached = 0;
        const auto see = [&](TaskId p, Nanoseconds reached) {
            if (latest == none || reached > latestReached) {
                latest = p;
                latestReached = reached;
            }
        };
        // An overlapped pair is represented by its first block, which also waits for the inputs of the second.
        forEachPredecessor(program, last, [&](TaskId p, When when) {
            if (timeline.start[p] != notRun && when != When::Started)
                see(p, timeline.end[p]);
        });
        // A transfer that has passed the bus may still be in flight.
        if (const TaskId p = onBus.empty() ? none : onBus[last]; p != none && !onPath[p])
            see(p, std::min(timeline.end[p], timeline.start[last]));
        // At time 0 the step itself is the cause; tasks that end at 0 explain nothing.
        if (latest != none && timeline.end[latest] <= 0 && timeline.start[last] == 0)
            latest = none;
        last = latest;
    }
    std::reverse(path.begin(), path.end());
    return path;
}

LatestInput latestInput(const Program& program, const Timeline& timeline, TaskId task)
{
    LatestInput cause;
    if (const TaskId data = program.afterData[task]; data != none)
        cause = {data, timeline.end[data], false};
    const auto less = [](const Program::ExtraDependency& a, TaskId b) { return a.task < b; };
    auto extra = std::lower_bound(program.extraDependencies.begin(), program.extraDependencies.end(), task, less);
    for (; extra != program.extraDependencies.end() && extra->task == task; ++extra) {
        if (extra->after == none && extra->earliestStart > cause.ready)
            cause = {none, extra->earliestStart, true};
        else if (extra->after != none && timeline.end[extra->after] > cause.ready)
            cause = {extra->after, timeline.end[extra->after], false};
    }
    return cause;
}

std::vector<Nanoseconds> slack(const Program& program, const Timeline& timeline)
{
    const std::size_t count = program.tasks.size();
    Nanoseconds finish = 0;
    for (const Nanoseconds end : timeline.end)
        finish = std::max(finish, end);
    std::vector<Nanoseconds> latestEnd(count, finish);
    const std::vector<TaskId> onBus = passedBefore(program, timeline);
    const auto limitInputs = [&](TaskId t) {
        // Transfers and reductions have no host gap; they may have waited for a bus.
        const Nanoseconds gap = isBesideBlocks(program.tasks[t].kind) ? 0 : gapBefore(program, timeline, t);
        const Nanoseconds latestStart = latestEnd[t] - (timeline.end[t] - timeline.start[t]) - gap;
        forEachPredecessor(program, t, [&](TaskId p, When when) {
            const Nanoseconds limit = when == When::Started ? latestEnd[t] : latestStart; // a pair ends together
            latestEnd[p] = std::min(latestEnd[p], limit);
        });
        if (const TaskId p = onBus.empty() ? none : onBus[t]; p != none) // the link's latency overlaps with t
            latestEnd[p] =
                std::min(latestEnd[p], latestStart + std::max<Nanoseconds>(0, timeline.end[p] - timeline.start[t]));
    };
    for (const TaskId t : backwards(timeline, !onBus.empty()))
        limitInputs(t);
    for (const Program::Overlap& pair : program.overlaps)
        latestEnd[pair.second] = std::min(latestEnd[pair.second], latestEnd[pair.first]);
    for (TaskId t = 0; t < count; ++t)
        latestEnd[t] -= timeline.end[t];
    return latestEnd;
}

} // namespace pipewright
