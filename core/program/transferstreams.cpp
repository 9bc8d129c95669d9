// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/transferstreams.h"

#include <algorithm>

namespace pipewright {

void chainStreams(Program& program)
{
    if (program.communication != Communication::OneStream)
        return;
    using Extra = Program::ExtraDependency;
    std::vector<TaskId> last; // per device: the transfer at the end of its stream
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind != TaskKind::Transfer && !isCopyCollective(task.kind))
            continue;
        const auto from = static_cast<std::size_t>(task.device), to = static_cast<std::size_t>(task.recordedOn());
        last.resize(std::max({last.size(), from + 1, to + 1}), none);
        program.afterOnDevice[t] = last[from];
        if (last[to] != none && last[to] != last[from])
            program.extraDependencies.push_back({t, last[to], 0});
        last[from] = last[to] = t;
    }
    std::stable_sort(program.extraDependencies.begin(), program.extraDependencies.end(),
                     [](const Extra& a, const Extra& b) { return a.task < b.task; });
}

} // namespace pipewright
