// SPDX-License-Identifier: GPL-3.0-or-later
// The steps are cut into horizontal strips: each strip is one interval, from the block that raises the bytes above its
// height to the block that lowers them below. At a block where one strip ends and another begins only one of the two
// rises above what is held on both sides, so the strips never hold more than the block itself.
#include "core/search/heldbytes.h"

#include <algorithm>

namespace pipewright {

HeldBytes::HeldBytes(const SearchModel& model, StageIndex stage, MicrobatchIndex microbatch)
{
    Bytes held = 0;
    for (int kind = 0; kind < taskKinds; ++kind)
        if (const std::int32_t id = model.taskOf(kind, stage, microbatch); id >= 0) {
            const SearchTask& task = model.tasks[id];
            const Bytes during = held + task.taken + task.passing;
            held += task.taken - task.freed;
            m_steps.push_back({id, during, held});
        }
}

bool HeldBytes::isConstant() const
{
    return std::all_of(m_steps.begin(), m_steps.end(), [this](const Step& step) {
        return step.during == afterForward() && (step.after == afterForward() || &step == &m_steps.back());
    });
}

std::vector<HeldBytes::Interval> HeldBytes::intervals() const
{
    std::vector<Interval> intervals;
    cover(0, m_steps.size() - 1, 0, intervals);
    for (std::size_t i = 0; i < m_steps.size(); ++i) {
        const Step& step = m_steps[i];
        const Bytes before = i > 0 ? m_steps[i - 1].after : 0, behind = &step == &m_steps.back() ? 0 : step.after;
        if (const Bytes more = step.during - std::max(before, behind); more > 0)
            intervals.push_back({step.task, step.task, more});
    }
    return intervals;
}

/// The least that is held between two neighbours of the blocks `from` to `to`.
Bytes HeldBytes::least(std::size_t from, std::size_t to) const
{
    Bytes bytes = from < to ? m_steps[from].after : 0;
    for (std::size_t i = from; i < to; ++i)
        bytes = std::min(bytes, m_steps[i].after);
    return bytes;
}

/// Adds the strip above `known` that reaches from the block `from` to the block `to`, and the strips above it.
void HeldBytes::cover(std::size_t from, std::size_t to, Bytes known, std::vector<Interval>& intervals) const
{
    if (from >= to)
        return;
    const Bytes height = std::max(known, least(from, to));
    if (height > known)
        intervals.push_back({m_steps[from].task, m_steps[to].task, height - known});
    std::size_t begin = from;
    for (std::size_t i = from; i < to; ++i)
        if (m_steps[i].after <= height) {
            cover(begin, i, height, intervals);
            begin = i + 1;
        }
    cover(begin, to, height, intervals);
}

} // namespace pipewright
