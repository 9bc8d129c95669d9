// SPDX-License-Identifier: GPL-3.0-or-later
// One thread of a search: its share of the starting points, then rounds of rules and local search around the best
// schedule until it is stopped.
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
    /// Usually after Incumbent::offerGiven().
    void run(const std::function<bool()>& stop);
    /// Tasks placed and timed so far, those of a search of fewer microbatches not counted.
    std::int64_t work() const { return m_tools ? m_tools->work() : 0; }

private:
    /// Makes and times candidates. Holds tables of all blocks, so it is created when the first candidate is.
    struct Tools {
        Tools(const SearchModel& given, const SearchOptions& options);
        std::int64_t work() const { return policies.work() + times.work() + laneSearch.work() + windows.work(); }

        SearchModel model; ///< a copy, whose capacity shrinks where predictions need more
        PolicyRunner policies;
        LaneTimes times;
        LaneSearch laneSearch;
        WindowSearch windows;
    };
    Tools& tools();
    void tryHints(const std::function<bool()>& stop);
    /// The schedule as lanes; nothing when its placement differs or blocks are missing.
    std::optional<Lanes> lanesOf(const Schedule& schedule) const;
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
    const SearchOptions& m_options;
    Incumbent& m_incumbent;
    int m_index;
    std::mt19937_64 m_random;
    std::unique_ptr<Tools> m_tools;
    ByDevice<Bytes> m_capacity;                      ///< capacities for the tools' model, until it is created
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
