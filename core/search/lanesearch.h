// SPDX-License-Identifier: GPL-3.0-or-later
// Local search among orders: a move puts one block elsewhere in its device's lane, mostly a block of the critical path,
// and times the whole result again. Late acceptance: a move is kept when it is no worse than the schedule accepted some
// hundred moves ago, which escapes small local optima without a temperature. O(tasks) per move.
#pragma once

#include "core/search/searchmodel.h"

#include <functional>
#include <random>

namespace pipewright {

class LaneSearch {
public:
    LaneSearch(const SearchModel& model, SearchObjective objective);
    /// Tries `changes` moves from `lanes`, which must be allowed, and leaves the best schedule there. Returns its
    /// value.
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
