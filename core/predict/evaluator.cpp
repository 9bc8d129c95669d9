// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/evaluator.h"

#include <algorithm>

namespace pipewright {

namespace {

/// A stage's gradients over two replicas take as long as sending them.
Nanoseconds replicaSumTime(const Task& task, const Costs& costs)
{
    if (task.device == task.peer)
        return 0;
    const Bytes bytes = costs.stages[task.stage].gradients;
    return costs.linkBetween(task.device, task.peer).transferTime(bytes);
}

} // namespace

Evaluator::Evaluator(const Program& program, const Costs& costs) : m_program(program)
{
    const std::size_t count = program.tasks.size();
    m_nodes.resize(count);
    for (TaskId t = 0; t < count; ++t) {
        const TaskId a = program.afterOnDevice[t], b = program.afterData[t];
        m_nodes[t].after[0] = a == none ? t : a;
        m_nodes[t].after[1] = b == none ? t : b;
    }
    setCosts(costs);
}

void Evaluator::setCosts(const Costs& costs)
{
    // Transfers of the chain are alike per directed pair and size; remember the last one looked up.
    int source = -1, destination = -1;
    const LinkCosts* link = nullptr;
    for (TaskId t = 0; t < m_nodes.size(); ++t) {
        const Task& task = m_program.tasks[t];
        Nanoseconds& duration = m_nodes[t].duration;
        switch (task.kind) {
        case TaskKind::Compute: duration = costs.duration(task.op, task.stage, task.microbatch); break;
        case TaskKind::Update: duration = costs.duration(task.op, task.stage); break;
        case TaskKind::PutInPlace:
        case TaskKind::SetOut: duration = 0; break;
        case TaskKind::Reduce: duration = costs.reduce; break;
        case TaskKind::ReplicaSum: duration = replicaSumTime(task, costs); break;
        case TaskKind::Transfer: {
            if (task.device != source || task.peer != destination) {
                source = task.device;
                destination = task.peer;
                link = &costs.linkBetween(source, destination);
            }
            Bytes bytes = 0;
            for (const BufferId b : m_program.reads(t))
                bytes += m_program.buffers[b].bytes;
            duration = link->transferTime(bytes);
        }
        }
    }
    for (const Program::Overlap& pair : m_program.overlaps) {
        Nanoseconds& first = m_nodes[pair.first].duration;
        m_nodes[pair.second].duration = first = costs.overlapped(first, m_nodes[pair.second].duration);
    }
    m_latency.clear();
    for (const Program::ExtraDependency& extra : m_program.extraDependencies) {
        const bool shared = extra.when == Program::ExtraDependency::When::LinkFree;
        const Task* task = shared ? &m_program.tasks[extra.after] : nullptr;
        m_latency.push_back(shared ? costs.linkBetween(task->device, task->peer).latency : 0);
    }
}

Nanoseconds Evaluator::reached(const Program::ExtraDependency& extra, const Timeline& timeline) const
{
    if (extra.after == none)
        return 0;
    switch (extra.when) {
    case Program::ExtraDependency::When::Ended: return timeline.end[extra.after];
    case Program::ExtraDependency::When::Started: return timeline.start[extra.after];
    case Program::ExtraDependency::When::LinkFree:
        return timeline.end[extra.after] - m_latency[&extra - m_program.extraDependencies.data()];
    }
    return 0;
}

void Evaluator::evaluate(Timeline& timeline) const
{
    const std::size_t count = m_nodes.size();
    timeline.start.resize(count);
    timeline.end.resize(count);
    const Node* nodes = m_nodes.data();
    Nanoseconds* start = timeline.start.data();
    Nanoseconds* end = timeline.end.data();
    auto extra = m_program.extraDependencies.begin();
    TaskId t = 0;
    for (;;) {
        const auto stop = extra == m_program.extraDependencies.end() ? static_cast<TaskId>(count) : extra->task;
        for (; t < stop; ++t) {
            // A missing dependency points at the task itself, whose end is still 0 here: no branch needed.
            end[t] = 0;
            const Nanoseconds begin = std::max(end[nodes[t].after[0]], end[nodes[t].after[1]]);
            start[t] = begin;
            end[t] = begin + nodes[t].duration;
        }
        if (t == count)
            return;
        end[t] = 0;
        Nanoseconds begin = std::max(end[nodes[t].after[0]], end[nodes[t].after[1]]);
        for (; extra != m_program.extraDependencies.end() && extra->task == t; ++extra)
            begin = std::max({begin, extra->earliestStart, reached(*extra, timeline)});
        start[t] = begin;
        end[t] = begin + nodes[t].duration;
        ++t;
    }
}

} // namespace pipewright
