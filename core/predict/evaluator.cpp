// SPDX-License-Identifier: GPL-3.0-or-later
// Longest path through a directed acyclic graph whose tasks are already in topological order: a start is the latest end
// among the task's predecessors. Two edges per task are inline in the node; tasks with more are rare and split the pass
// into runs without them. O(tasks + extra dependencies).
#include "core/predict/evaluator.h"

#include "core/program/pairtimes.h"
#include "core/program/replicasums.h"

#include <algorithm>
#include <numeric>

namespace pipewright {

Evaluator::Evaluator(const Program& program, Times times) : m_program(program)
{
    const std::size_t count = program.tasks.size();
    m_nodes.resize(count);
    for (TaskId t = 0; t < count; ++t) {
        const TaskId a = program.afterOnDevice[t], b = program.afterData[t];
        m_nodes[t].after[0] = a == none ? t : a;
        m_nodes[t].after[1] = b == none ? t : b;
    }
    if (times == Times::Planned && !program.busOfLink.empty())
        m_busQueues.emplace(program);
    if (program.extraDependencies.empty())
        return;
    m_extraBegin.assign(count + 1, 0);
    for (const Program::ExtraDependency& extra : program.extraDependencies)
        ++m_extraBegin[extra.task + 1];
    std::partial_sum(m_extraBegin.begin(), m_extraBegin.end(), m_extraBegin.begin());
}

void Evaluator::setDurations(std::span<const Nanoseconds> durations)
{
    for (TaskId t = 0; t < m_nodes.size(); ++t)
        m_nodes[t].duration = durations[t];
}

void Evaluator::setCosts(const Costs& costs)
{
    // Transfers of the chain have equal costs per directed pair and size; the last lookup is cached.
    int source = -1, destination = -1;
    const LinkCosts* link = nullptr;
    for (TaskId t = 0; t < m_nodes.size(); ++t) {
        const Task& task = m_program.tasks[t];
        Nanoseconds& duration = m_nodes[t].duration;
        switch (task.kind) {
        case TaskKind::Compute: duration = costs.duration(task.op, task.stage, task.microbatch()); break;
        case TaskKind::Update: duration = updateTime(m_program, m_program.versioned(), costs, task.stage); break;
        case TaskKind::Gather: duration = costs.stages[static_cast<std::size_t>(task.stage)].gather; break;
        case TaskKind::ReduceGradients:
            duration = costs.stages[static_cast<std::size_t>(task.stage)].reduceGradients;
            break;
        case TaskKind::CopyWeightsIn:
        case TaskKind::CopyWeightsOut: duration = 0; break;
        case TaskKind::Collective: duration = 0; break; // member programs set their durations: setDurations()
        case TaskKind::Reduce:
            duration = task.joinsTwoDevices() ? costs.reduceTime(task.device, task.otherDevice(),
                                                                 m_program.buffers.bytes(m_program.writes(t).front()))
                                              : costs.reduce; // nothing is moved
            break;
        case TaskKind::ReplicaSum:
            duration = replicaSumTime(m_program, task.stage, pairOf(m_program, task), costs);
            break;
        case TaskKind::Transfer: {
            if (task.device != source || task.destination() != destination) {
                source = task.device;
                destination = task.destination();
                link = &costs.linkBetween(source, destination);
            }
            duration = link->transferTime(movedBytes(m_program, t));
            break;
        }
        case TaskKind::Offload:
        case TaskKind::Reload:
            duration = costs.hostLink ? costs.hostLink->transferTime(movedBytes(m_program, t)) : 0;
            break;
        }
    }
    PairTimes pairs(costs);
    for (const Program::Overlap& pair : m_program.overlaps)
        m_nodes[pair.first].duration = m_nodes[pair.second].duration = pairs.length(m_program, pair);
    setHostGaps(costs);
    if (m_busQueues)
        m_busQueues->setCosts(costs, *this);
}

void Evaluator::setHostGaps(const Costs& costs)
{
    m_gaps.clear();
    if (!costs.hasHostGaps())
        return;
    for (const Task& task : m_program.tasks)
        m_gaps.push_back(traitsOf(task.kind).computes ? costs.hostGap(task.op, task.device) : 0);
    // The two of a pair begin together.
    for (const Program::Overlap& pair : m_program.overlaps) {
        m_gaps[pair.first] = std::max(m_gaps[pair.first], m_gaps[pair.second]);
        m_gaps[pair.second] = 0;
    }
}

void Evaluator::setHostGap(TaskId task, Nanoseconds gap)
{
    if (!m_gaps.empty())
        m_gaps[task] = gap;
}

/// `start(task, ready)` and `duration(task)` say when a task starts that could from `ready` on, and for how long.
template<typename Start, typename Duration>
void Evaluator::pass(TaskId first, Timeline& timeline, Start startOf, Duration durationOf) const
{
    const std::size_t count = m_nodes.size();
    const Node* nodes = m_nodes.data();
    Nanoseconds* start = timeline.start.data();
    Nanoseconds* end = timeline.end.data();
    const auto& extras = m_program.extraDependencies;
    auto extra = m_extraBegin.empty() ? extras.end() : extras.begin() + m_extraBegin[first];
    const auto arrived = [&](TaskId t) {
        // A missing dependency points at the task itself, whose end is still 0 here: no branch needed.
        end[t] = 0;
        return std::max(end[nodes[t].after[0]], end[nodes[t].after[1]]);
    };
    const auto run = [&](TaskId t, Nanoseconds ready) {
        start[t] = startOf(t, ready);
        end[t] = start[t] + durationOf(t);
    };
    for (TaskId t = first;; ++t) {
        for (const auto stop = extra == extras.end() ? static_cast<TaskId>(count) : extra->task; t < stop; ++t)
            run(t, arrived(t));
        if (t == count)
            return;
        Nanoseconds ready = arrived(t);
        for (; extra != extras.end() && extra->task == t; ++extra)
            ready = std::max(ready, reached(*extra, timeline));
        run(t, ready);
    }
}

void Evaluator::evaluate(Timeline& timeline) const
{
    timeline.start.resize(m_nodes.size());
    timeline.end.resize(m_nodes.size());
    if (m_busQueues)
        m_busQueues->evaluate(*this, timeline);
    else
        evaluateFrom(0, timeline);
}

void Evaluator::evaluateFrom(TaskId first, Timeline& timeline) const
{
    const auto duration = [nodes = m_nodes.data()](TaskId t) { return nodes[t].duration; };
    if (m_gaps.empty())
        pass(
            first, timeline, [](TaskId, Nanoseconds ready) { return ready; }, duration);
    else
        pass(
            first, timeline, [this](TaskId t, Nanoseconds ready) { return startOf(t, ready); }, duration);
}

void Evaluator::evaluate(std::span<const Nanoseconds> durations, std::span<const Nanoseconds> lags,
                         Timeline& timeline) const
{
    timeline.start.resize(m_nodes.size());
    timeline.end.resize(m_nodes.size());
    // A negative lag may end a task before the step begins; the next task is ready at 0 at the earliest.
    pass(
        0, timeline, [lags](TaskId t, Nanoseconds ready) { return std::max<Nanoseconds>(0, ready) + lags[t]; },
        [durations](TaskId t) { return durations[t]; });
}

} // namespace pipewright
