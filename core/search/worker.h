// SPDX-License-Identifier: GPL-3.0-or-later
// One thread of a search: starting points first, shared out among the threads, then rounds of rules and local
// search around the best until told to stop.
#pragma once

#include "core/search/constraintsearch.h"
#include "core/search/incumbent.h"
#include "core/search/lanesearch.h"
#include "core/search/policy.h"

namespace pipewright {

class SearchWorker {
public:
    SearchWorker(const Design& design, const SearchModel& model, const SearchOptions& options, Incumbent& incumbent,
                 int index);
    void run(const std::function<bool()>& stop);

private:
    void tryGiven(); ///< the design's own order and the hints
    void offerSchedule(const Schedule& schedule, const char* source);
    void tryFamilies(const std::function<bool()>& stop);
    void tryRules(const std::function<bool()>& stop);
    void exhaust(const std::function<bool()>& stop);
    void repeatFewer(const std::function<bool()>& stop);
    void varyRules(int runs, const std::function<bool()>& stop);
    void searchLanes(const std::function<bool()>& stop);
    bool tryPolicy(const Policy& policy); ///< true when it is no worse than the best policy so far
    void offer(const Lanes& lanes, const char* source);
    bool mine(int number) const { return number % m_options.threads == m_index; }

    const Design& m_design;
    const SearchModel& m_given;
    SearchModel m_model; ///< a copy, whose capacity shrinks where predictions need more than it thought
    const SearchOptions& m_options;
    Incumbent& m_incumbent;
    int m_index;
    std::mt19937_64 m_random;
    PolicyRunner m_policies;
    LaneTimes m_times;
    LaneSearch m_laneSearch;
    std::unique_ptr<ConstraintSearch> m_constraints; ///< of one thread, while there is anything left to prove
    struct Scored {
        Policy policy;
        Nanoseconds value = Incumbent::noValue, sum = 0;
    };
    Scored m_bestPolicy;
    Lanes m_lastLanes; ///< of the policy tried last
};

} // namespace pipewright
