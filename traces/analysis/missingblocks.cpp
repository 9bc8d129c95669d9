// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/missingblocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

std::vector<TaskId> missingBlocks(const Program& program, const Timeline& measured)
{
    std::vector<TaskId> missing;
    for (TaskId task = 0; task < program.tasks.size(); ++task)
        if (program.tasks[task].kind == TaskKind::Compute && measured.start[task] == notRun)
            missing.push_back(task);
    return missing;
}

Diagnostics warningOfMissing(const Program& program, const Timeline& measured, const std::string& trace,
                             const std::string& step)
{
    const std::vector<TaskId> missing = missingBlocks(program, measured);
    if (missing.empty())
        return {};
    constexpr std::size_t named = 4;
    std::string names;
    for (std::size_t i = 0; i < std::min(named, missing.size()); ++i)
        names += (i == 0 ? "" : ", ") + program.label(missing[i]);
    if (missing.size() > named)
        names += fmt::format(" and {} more", missing.size() - named);
    return {{Severity::Warning, trace,
             fmt::format("{} of {} blocks were not measured in {}: {}", missing.size(), program.computeCount(), step,
                         names),
             "what waited for them is explained by nothing; take another step, or the traces of all ranks"}};
}

} // namespace pipewright
