// SPDX-License-Identifier: GPL-3.0-or-later
// Local search among orders: one block of a device is put elsewhere in its lane, mostly one that the longest chain
// of waits runs through, and the result is timed again as a whole. Late acceptance: a change stays when it is no
// worse than what was accepted some hundred changes ago, which passes through small losses and needs no
// temperature. One change costs O(tasks).
#pragma once

#include "core/search/searchmodel.h"

#include <functional>
#include <random>

namespace pipewright {

class LaneSearch {
public:
    LaneSearch(const SearchModel& model, SearchObjective objective);
    /// Tries so many changes from `lanes`, which must be allowed, and leaves the best found in it. Returns its value.
    Nanoseconds improve(Lanes& lanes, int changes, std::mt19937_64& random, const std::function<bool()>& stop);
    std::int64_t work() const { return m_times.work(); } ///< tasks timed so far

private:
    bool mayPass(std::int32_t earlier, std::int32_t later) const; ///< may two neighbours change places?
    void findCritical(const Lanes& lanes);

    const SearchModel& m_model;
    SearchObjective m_objective;
    LaneTimes m_times;
    std::vector<std::int32_t> m_position, m_critical;
};

} // namespace pipewright
