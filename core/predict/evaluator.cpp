// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/evaluator.h"

#include <algorithm>

namespace pipewright {

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
        case TaskKind::Compute:
        case TaskKind::Update: duration = costs.duration(task.op, task.stage); break;
        case TaskKind::Reduce: duration = costs.reduce; break;
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
            begin = std::max({begin, extra->earliestStart, extra->after == none ? 0 : end[extra->after]});
        start[t] = begin;
        end[t] = begin + nodes[t].duration;
        ++t;
    }
}

} // namespace pipewright
