// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plan/foundplans.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace pipewright {

void FoundPlans::clear(int top)
{
    m_top = top;
    m_plans.clear();
    m_onFrontier.clear();
}

void FoundPlans::add(const std::vector<PlanFound>& plans)
{
    m_plans.insert(m_plans.end(), plans.begin(), plans.end());
    std::stable_sort(m_plans.begin(), m_plans.end(), [](const PlanFound& a, const PlanFound& b) {
        return std::tie(a.step, a.peak) < std::tie(b.step, b.peak);
    });
    m_onFrontier.clear();
    std::vector<PlanFound> kept;
    Bytes least = std::numeric_limits<Bytes>::max();
    for (std::size_t i = 0; i < m_plans.size(); ++i) {
        const bool isOnFrontier = m_plans[i].peak < least;
        least = std::min(least, m_plans[i].peak);
        if (!isOnFrontier && i >= static_cast<std::size_t>(m_top))
            continue;
        kept.push_back(m_plans[i]);
        m_onFrontier.push_back(isOnFrontier);
    }
    m_plans = std::move(kept);
}

} // namespace pipewright
