// SPDX-License-Identifier: GPL-3.0-or-later
// One thread of a search: its share of the starting points, then rounds of rules and local search around the best
// schedule until told to stop.
#pragma once

#include "core/search/constraintsearch.h"
#include "core/search/incumbent.h"
#include "core/search/lanesearch.h"
#include "core/search/listscheduling.h"
#include "core/search/partsproof.h"
#include "core/search/windowsearch.h"

namespace pipewright {

class SearchWorker {
public:
    SearchWorker(const Design& design, const SearchModel& model, const SearchOptions& options, Incumbent& incumbent,
                 int index);
    void run(const std::function<bool()>& stop);
    /// Tasks placed and timed so far, those of a search of fewer microbatches not counted.
    std::int64_t work() const { return m_policies.work() + m_times.work() + m_laneSearch.work() + m_windows.work(); }

private:
    void tryGiven(); ///< the design's own order and the hints
    void offerSchedule(const Schedule& schedule, const char* source);
    void tryFamilies(const std::function<bool()>& stop);
    void tryRules(const std::function<bool()>& stop);
    void exhaust(const std::function<bool()>& stop);
    void repeatFewer(const std::function<bool()>& stop);
    void varyRules(int runs, const std::function<bool()>& stop);
    void searchLanes(const std::function<bool()>& stop);
    void searchWindows(const std::function<bool()>& stop);
    Lanes lanesToImprove(); ///< empty: none yet
    bool tryPolicy(const Policy& policy,
                   const std::function<bool()>& stop); ///< true when it is no worse than the best policy so far
    void offer(const Lanes& lanes, const char* source);
    bool mine(int number) const { return number % m_options.threads == m_index; }

    const Design& m_design;
    const SearchModel& m_given;
    SearchModel m_model; ///< a copy, whose capacity shrinks where predictions need more
    const SearchOptions& m_options;
    Incumbent& m_incumbent;
    int m_index;
    std::mt19937_64 m_random;
    PolicyRunner m_policies;
    LaneTimes m_times;
    LaneSearch m_laneSearch;
    WindowSearch m_windows;
    std::unique_ptr<ConstraintSearch> m_constraints; ///< on one thread, until finished
    std::unique_ptr<ProofByParts> m_parts;           ///< likewise, for designs with too many blocks
    struct Scored {
        Policy policy;
        Nanoseconds value = Incumbent::noValue, sum = 0;
    };
    Scored m_bestPolicy;
    Lanes m_lastLanes; ///< of the policy tried last
};

} // namespace pipewright
