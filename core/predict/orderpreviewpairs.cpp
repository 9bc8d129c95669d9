// SPDX-License-Identifier: GPL-3.0-or-later
// Overlapped pairs in a new order: the blocks of a separated pair run separately with the time of a single block.
#include "core/predict/orderpreview.h"

#include <algorithm>

namespace pipewright {

namespace {

using Extras = std::vector<Program::ExtraDependency>;

template<typename List>
auto rangeOf(List& extras, TaskId task)
{
    const auto begin =
        std::lower_bound(extras.begin(), extras.end(), task, [](const auto& e, TaskId t) { return e.task < t; });
    auto end = begin;
    while (end != extras.end() && end->task == task)
        ++end;
    return std::pair(begin, end);
}

} // namespace

void OrderPreview::breakPairs(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to)
{
    joinPairs();
    if (m_partner.empty())
        return;
    const std::vector<TaskId>& lane = m_lanes[m_device];
    for (std::size_t i = from; i < to; ++i) {
        const TaskId task = lane[positions[i]];
        if (isFirstOfPair(task) && (i + 1 == positions.size() || lane[positions[i + 1]] != m_partner[task]))
            breakPair(task);
    }
}

void OrderPreview::breakPair(TaskId first)
{
    const TaskId second = m_partner[first];
    const Program& program = m_present.program;
    for (const TaskId task : {first, second}) {
        const Task& block = program.tasks[task];
        m_evaluator.node(task).duration = m_design.costs.duration(block.op, block.stage, block.microbatch());
        m_evaluator.setHostGap(task, m_design.costs.hostGap(block.op, block.device));
    }
    // The second waits for the first's start; the first lists its own inputs and then all inputs of the second.
    Extras& extras = m_result.program.extraDependencies;
    const auto [secondBegin, secondEnd] = rangeOf(extras, second);
    const auto own = secondEnd - secondBegin - 1;
    for (auto extra = secondBegin; extra != secondEnd; ++extra)
        if (extra->when == Program::ExtraDependency::When::Started)
            *extra = {second, none, 0};
    const auto [firstBegin, firstEnd] = rangeOf(extras, first);
    const auto taken = own + (program.afterData[second] != none ? 1 : 0);
    for (auto extra = firstEnd - taken; extra != firstEnd; ++extra)
        *extra = {first, none, 0};
    std::vector<Program::Overlap>& overlaps = m_result.program.overlaps;
    overlaps.erase(
        std::lower_bound(overlaps.begin(), overlaps.end(), first, [](const auto& p, TaskId t) { return p.first < t; }));
    m_broken.push_back(first);
}

void OrderPreview::joinPairs()
{
    const Program& program = m_present.program;
    for (const TaskId first : m_broken) {
        for (const TaskId task : {first, m_partner[first]}) {
            m_evaluator.node(task).duration = m_present.timeline.end[task] - m_present.timeline.start[task];
            const auto [begin, end] = rangeOf(program.extraDependencies, task);
            std::copy(begin, end,
                      m_result.program.extraDependencies.begin() + (begin - program.extraDependencies.begin()));
        }
    }
    if (!m_broken.empty()) {
        m_result.program.overlaps = program.overlaps;
        m_evaluator.setHostGaps(m_design.costs);
    }
    m_broken.clear();
}

} // namespace pipewright
