// SPDX-License-Identifier: GPL-3.0-or-later
// Plans that are to be predicted, and the ranking of those that were: the best, and those that no other beats in both
// step and memory.
#pragma once

#include "core/families/family.h"
#include "core/plan/planbounds.h"

#include <compare>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

namespace pipewright {

/// A plan that bounds left over, small enough to keep all of them.
struct PlanCandidate {
    PlanBounds bounds;
    std::uint32_t setting = 0; ///< of PlanSettings::possible
    std::int32_t chunks = 1;
    const Family* family = nullptr;
    bool done = false; ///< predicted
    auto key() const { return std::tuple(setting, family, chunks); }
};

/// A predicted one.
struct RankedPlan {
    Nanoseconds step = 0;
    Bytes peak = 0;
    std::size_t setting = 0;
    const Family* family = nullptr; ///< in the order of the table
    int chunks = 1;
    auto operator<=>(const RankedPlan&) const = default;
};

class PlanRanking {
public:
    std::size_t top = 1;  ///< how many are the best
    double tolerance = 0; ///< of the frontier: what saves less than this share of memory may lack

    Nanoseconds best() const { return m_best.empty() ? 0 : *m_best.begin(); } ///< 0: none yet
    /// Whether no plan with these bounds is among the best …
    bool isLonger(const PlanBounds& bounds) const { return m_best.size() == top && bounds.step > *m_best.rbegin(); }
    /// … or on the frontier, which has its steps ascending and its peaks descending.
    bool isBehind(const PlanBounds& bounds) const
    {
        const auto behind = m_frontier.upper_bound(bounds.step);
        if (behind == m_frontier.begin())
            return false;
        const auto& [step, peak] = *std::prev(behind);
        return static_cast<double>(peak) * (1 - tolerance) <= static_cast<double>(bounds.peak)
               && (step < bounds.step || peak < bounds.peak);
    }
    /// Returns whether it is among the best or on the frontier so far.
    bool add(Nanoseconds step, Bytes peak)
    {
        m_best.insert(step);
        if (m_best.size() > top)
            m_best.erase(std::prev(m_best.end()));
        const auto behind = m_frontier.upper_bound(step);
        if (behind != m_frontier.begin() && std::prev(behind)->second <= peak)
            return step <= *m_best.rbegin();
        for (auto worse = m_frontier.lower_bound(step); worse != m_frontier.end() && worse->second >= peak;)
            worse = m_frontier.erase(worse);
        m_frontier[step] = peak;
        return true;
    }

private:
    std::multiset<Nanoseconds> m_best;       ///< the shortest steps
    std::map<Nanoseconds, Bytes> m_frontier; ///< step -> peak
};

} // namespace pipewright
