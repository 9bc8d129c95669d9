// SPDX-License-Identifier: GPL-3.0-or-later
// Expresses an overlapped pair by dependencies alone: the first block also waits for the inputs of the second, and
// the second waits for the first to start. O(dependencies log dependencies). Such pairs are DualPipe's
// (DeepSeek-V3, arXiv 2412.19437).
#include "core/program/overlaps.h"

#include <algorithm>

namespace pipewright {

void joinOverlaps(Program& program)
{
    if (program.overlaps.empty())
        return;
    std::sort(program.overlaps.begin(), program.overlaps.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::vector<Program::ExtraDependency> before = program.extraDependencies;
    auto& extras = program.extraDependencies;
    for (const Program::Overlap& pair : program.overlaps) {
        if (program.afterData[pair.second] != none)
            extras.push_back({pair.first, program.afterData[pair.second], 0});
        auto extra = std::lower_bound(before.begin(), before.end(), pair.second,
                                      [](const auto& e, TaskId task) { return e.task < task; });
        for (; extra != before.end() && extra->task == pair.second; ++extra) {
            extras.push_back(*extra);
            extras.back().task = pair.first;
        }
        extras.push_back({pair.second, pair.first, 0, Program::ExtraDependency::When::Started});
    }
    std::stable_sort(extras.begin(), extras.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
}

std::uint32_t partOrderOf(const Schedule& schedule, const Overlap& pair, Program& program)
{
    const PartSequence* stated = statedPartOrder(schedule, pair);
    if (stated == nullptr)
        return none;
    program.partOrders.push_back(*stated);
    return static_cast<std::uint32_t>(program.partOrders.size() - 1);
}

TaskId overlapsWith(const Program& program, TaskId first)
{
    const auto pair = std::lower_bound(program.overlaps.begin(), program.overlaps.end(), first,
                                       [](const auto& p, TaskId task) { return p.first < task; });
    return pair != program.overlaps.end() && pair->first == first ? pair->second : none;
}

std::vector<TaskId> overlapPartners(const Program& program)
{
    if (program.overlaps.empty())
        return {};
    std::vector<TaskId> partner(program.tasks.size(), none);
    for (const Program::Overlap& pair : program.overlaps) {
        partner[pair.first] = pair.second;
        partner[pair.second] = pair.first;
    }
    return partner;
}

} // namespace pipewright
