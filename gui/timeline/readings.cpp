// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/readings.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

std::optional<Nanoseconds> Readings::markNear(Nanoseconds time, double reach) const
{
    const auto near = std::find_if(m_marks.begin(), m_marks.end(), [&](Nanoseconds mark) {
        return std::abs(static_cast<double>(mark - time)) <= reach;
    });
    return near == m_marks.end() ? std::nullopt : std::optional(*near);
}

bool Readings::toggleMark(Nanoseconds time, double reach)
{
    m_last.reset();
    if (const std::optional<Nanoseconds> near = markNear(time, reach)) {
        std::erase(m_marks, *near);
        return false;
    }
    m_marks.insert(std::lower_bound(m_marks.begin(), m_marks.end(), time), time);
    m_last = time;
    return true;
}

void Readings::clearMarks()
{
    m_marks.clear();
    m_last.reset();
}

bool Readings::setRange(std::optional<Range> range)
{
    if (range && range->first > range->second)
        std::swap(range->first, range->second);
    if (range == m_range)
        return false;
    m_range = range;
    return true;
}

} // namespace pipewright
