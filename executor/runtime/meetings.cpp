// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/meetings.h"

#include <algorithm>

namespace pipewright {

std::optional<Meetings::Span> Meetings::add(TaskId task, int members, Nanoseconds start, Nanoseconds end)
{
    const std::lock_guard lock(m_mutex);
    const auto [found, isFirst] = m_told.try_emplace(task, Told{0, {start, end}});
    Told& told = found->second;
    told.span = {std::max(told.span.start, start), std::max(told.span.end, end)};
    if (++told.members < members)
        return std::nullopt;
    return m_told.extract(found).mapped().span;
}

} // namespace pipewright
