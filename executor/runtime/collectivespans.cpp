// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/collectivespans.h"

#include <algorithm>

namespace pipewright {

std::optional<CollectiveSpans::Span> CollectiveSpans::add(TaskId task, int members, Nanoseconds start, Nanoseconds end)
{
    const std::lock_guard lock(m_mutex);
    const auto [found, isFirst] = m_open.try_emplace(task, Open{0, {start, end}});
    Open& open = found->second;
    open.span = {std::max(open.span.start, start), std::max(open.span.end, end)};
    if (++open.reported < members)
        return std::nullopt;
    return m_open.extract(found).mapped().span;
}

} // namespace pipewright
