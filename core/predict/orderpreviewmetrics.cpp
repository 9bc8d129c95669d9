// SPDX-License-Identifier: GPL-3.0-or-later
// The metrics of a new order: the sums over each device's tasks continue from the state stored before the first change.
#include "core/predict/orderpreview.h"

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::size_t stride = 4096; // tasks from one kept state to the next

} // namespace

void OrderPreview::prepareMeters()
{
    const Program& program = m_present.program;
    std::vector<LaneMeter> sums(program.devices.size());
    ExtraCursor extras(program);
    m_sums.push_back(sums);
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (isReduction(task.kind))
            m_reductions.push_back(t);
        if (joinsDevices(task.kind))
            continue;
        if (m_metered.size() % stride == 0 && !m_metered.empty())
            m_sums.push_back(sums);
        const bool computes = task.kind == TaskKind::Compute;
        m_metered.push_back({t, static_cast<std::uint16_t>(task.device), computes});
        sums[task.device].add(program, m_present.timeline, t, computes, extras);
    }
}

Metrics OrderPreview::measureFrom(TaskId first) const
{
    const auto changed = static_cast<std::size_t>(
        std::partition_point(m_metered.begin(), m_metered.end(), [first](const Metered& m) { return m.task < first; })
        - m_metered.begin());
    const std::size_t kept = std::min(changed / stride, m_sums.size() - 1);
    std::vector<LaneMeter> sums = m_sums[kept];
    ExtraCursor extras(m_result.program);
    for (std::size_t i = kept * stride; i < m_metered.size(); ++i) {
        const Metered& metered = m_metered[i];
        sums[metered.device].add(m_result.program, m_result.timeline, m_sequence[metered.task], metered.computes,
                                 extras);
    }
    // A transfer comes after what made its value and before what needs it, so it is neither first nor last.
    Nanoseconds begin = std::numeric_limits<Nanoseconds>::max(), finish = 0;
    for (const LaneMeter& sum : sums)
        if (sum.previousEnd >= 0) {
            begin = std::min(begin, sum.first);
            finish = std::max(finish, sum.previousEnd);
        }
    for (const TaskId reduction : m_reductions) {
        begin = std::min(begin, m_result.timeline.start[reduction]);
        finish = std::max(finish, m_result.timeline.end[reduction]);
    }
    return summarize(m_result.program, m_result.timeline, sums, begin, finish);
}

} // namespace pipewright
