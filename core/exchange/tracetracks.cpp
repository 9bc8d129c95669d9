// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/tracetracks.h"

namespace pipewright {

std::size_t FreeRows::rowFor(Nanoseconds start, Nanoseconds end)
{
    for (std::size_t row = 0; row < m_freeFrom.size(); ++row)
        if (m_freeFrom[row] <= start) {
            m_freeFrom[row] = end;
            return row;
        }
    m_freeFrom.push_back(end);
    return m_freeFrom.size() - 1;
}

std::string_view categoryOf(const Program& program, const Task& task)
{
    switch (task.kind) {
    case TaskKind::Compute: return describe(task.op);
    case TaskKind::Transfer:
        return program.bringsParameters(task) ? "transfer of parameters"
               : task.op == Op::F             ? "transfer of activation"
                                              : "transfer of gradient";
    case TaskKind::Reduce:
    case TaskKind::ReplicaSum: return "reduction";
    case TaskKind::Update:
    case TaskKind::CopyWeightsIn:
    case TaskKind::CopyWeightsOut: return "update";
    case TaskKind::Collective: return "collective";
    case TaskKind::Offload: return "copy to host memory";
    case TaskKind::Reload: return "copy from host memory";
    case TaskKind::Gather: return "gathering of parameters";
    case TaskKind::ReduceGradients: return "sum of gradients over copies";
    }
    return {};
}

std::vector<TaskId> firstConsumers(const Program& program)
{
    std::vector<TaskId> consumers(program.tasks.size(), none);
    const auto note = [&](TaskId task, TaskId after) {
        if (after != none && program.tasks[after].kind == TaskKind::Transfer && consumers[after] == none)
            consumers[after] = task;
    };
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        note(t, program.afterData[t]);
    for (const Program::ExtraDependency& extra : program.extraDependencies)
        if (program.tasks[extra.task].kind != TaskKind::Transfer) // these wait for each other in a stream
            note(extra.task, extra.after);
    return consumers;
}

} // namespace pipewright
