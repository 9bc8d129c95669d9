// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/levelofdetail.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

LevelOfDetail levelOfDetail(const Lane& lane, const TimeAxis& axis, double scale)
{
    constexpr double individualMean = 3;  // pixels: mean width from which every block is drawn by itself
    constexpr double individualWidth = 8; // pixels from which a block is drawn by itself among merged ones
    constexpr double columnWidth = 6;     // pixels; a few blocks, so that the mix is steady
    // A window is merged everywhere or nowhere: a mixture of both shows patterns that are not in the schedule.
    const std::size_t first = lane.firstEndingAfter(axis.start);
    const std::size_t last = lane.firstStartingFrom(axis.end(), first);
    const bool dense = static_cast<double>(last - first) * individualMean > axis.width;
    return {dense ? static_cast<int>(individualWidth * scale) : 0, std::max(1, static_cast<int>(columnWidth * scale))};
}

void MergedColumns::stack(double first, double last, std::size_t index,
                          std::array<std::vector<QRectF>, opCount>& merged)
{
    const std::array<double, opCount> before =
        m_spentUntil == first ? m_spent : m_lane.timePerOpUntil(m_axis.timeAt(first), index > 0 ? index - 1 : 0);
    m_spent = m_lane.timePerOpUntil(m_axis.timeAt(last), index);
    m_spentUntil = last;
    const double heightPerTime = m_area.height() / ((last - first) * m_axis.nsPerPixel);
    double busy = 0;
    double bottom = m_area.bottom();
    for (std::size_t op = 0; op < before.size(); ++op) {
        if (m_spent[op] <= before[op])
            continue;
        busy += m_spent[op] - before[op];
        // Rounding the running sum instead of each share keeps the total height exact.
        const double top =
            std::max(m_area.top(), m_area.bottom() - std::round(busy * heightPerTime * m_scale) / m_scale);
        if (top < bottom)
            merged[op].emplace_back(first, top, last - first, bottom - top);
        bottom = top;
    }
}

} // namespace pipewright
