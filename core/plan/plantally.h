// SPDX-License-Identifier: GPL-3.0-or-later
// What a search for plans has found so far, for all of its threads: the ranking, what is still to be predicted, what
// was refused and why; and from it progress, and the state with which an interrupted search goes on.
#pragma once

#include "core/plan/planranking.h"
#include "core/plan/planstate.h"

#include <chrono>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

namespace pipewright {

class PlanTally {
public:
    using Clock = std::chrono::steady_clock;

    /// `settings` have `plans` plans, of which those in PlanRequest::resumed count at once. Both have to live as long
    /// as this.
    PlanTally(const PlanRequest& request, const PlanSettings& settings, std::int64_t plans, Clock::time_point began);

    enum class Because { Memory, Shape };
    /// `count` plans that are decided by it.
    void refuse(Because because, const std::string& reason, std::int64_t count);

    /// To predict a plan before the others; false when that was done already. `isKnown`: an interrupted search has
    /// predicted it.
    bool claim(const PlanCandidate& plan, bool& isKnown);
    /// Takes what an interrupted search found of all plans of one order. False: nothing.
    bool takeBounded(const PlanOrder& order, int pipeline, int microbatches);
    void count(const PlanState::Bounded& bounded);
    void count(const PlanState::Predicted& plan);

    enum class Aim { Best, Frontier };
    bool isHopeless(const PlanBounds& bounds);
    bool isHopeless(const PlanBounds& bounds, Aim aim);
    /// After the bounds: the shortest first.
    std::vector<PlanCandidate>& sortedOpen();

    /// After the threads: saves the state when the search was stopped, and returns all that is not of single plans.
    /// `found`: all plans that can be, the shortest first.
    PlanResult finish(bool stopped, std::vector<RankedPlan>& found);
    bool complete = false; ///< nothing shorter than the best is left to find; for progress

private:
    // All of these under the mutex.
    void add(std::int64_t& kind, const std::string& reason, std::int64_t count);
    void take(const PlanState::Predicted& plan);
    void take(const PlanState::Bounded& bounded);
    bool isPredicted(const PlanCandidate& plan) const;
    void report();
    void saveIfDue();

    using PlanKey = std::tuple<std::uint32_t, const Family*, std::int32_t>; ///< as PlanCandidate::key()
    const PlanRequest& m_request;
    const PlanSettings& m_settings;
    const std::int64_t m_plans;
    const Clock::time_point m_began;
    std::mutex m_mutex; ///< of what follows
    PlanResult m_result;
    PlanRanking m_ranking;
    std::vector<PlanCandidate> m_open;
    std::vector<RankedPlan> m_found;
    std::set<PlanKey> m_claimed; ///< before the others
    std::set<PlanKey> m_known;   ///< predicted by the search that this one resumes
    std::map<std::tuple<const Family*, int, int, int>, const PlanState::Bounded*> m_bounded; ///< likewise
    std::int64_t m_decided = 0;                                                              ///< plans
    PlanState m_state;                                                                       ///< with PlanRequest::save
    Clock::time_point m_nextSave{}; ///< at once: a search that is killed early has a state, too
};

} // namespace pipewright
