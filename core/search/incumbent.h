// SPDX-License-Identifier: GPL-3.0-or-later
// The best schedule so far, shared by the threads of a search. Every schedule is confirmed by predict() before it is
// taken.
#pragma once

#include "core/search/search.h"

#include <atomic>
#include <mutex>

namespace pipewright {

/// What became of an order that was offered.
enum class Offered {
    Taken,     ///< it is the best, with the promised value
    Longer,    ///< its prediction is above the promised value; it may have been taken
    Refused,   ///< memory does not hold it, it breaks a lock, or it deadlocks
    NotShorter ///< the promised value is none below the best
};

class Incumbent {
public:
    using Clock = std::chrono::steady_clock;
    /// `began`: the start of the search, from which its time limit counts.
    Incumbent(const Design& design, const SearchModel& model, const SearchOptions& options, Nanoseconds bound,
              Clock::time_point began = Clock::now());

    /// Predicts lanes whose promised value beats the best, and keeps them if the predicted value does too. Where the
    /// prediction exceeds a device's limit (buffers of values in flight), its `capacity` shrinks by the excess.
    /// A deadlock refuses the order; throws every other Error of the prediction.
    Offered offer(const Lanes& lanes, Nanoseconds promised, const char* source, ByDevice<Bytes>& capacity);
    /// The design's own order, whole and within the limit.
    void offerGiven();
    /// A lower bound proved by exhausting the alternatives.
    void proveBound(Nanoseconds bound, std::string why);

    Nanoseconds best() const { return m_best.load(); } ///< noValue: none yet
    Nanoseconds bound() const { return m_bound.load(); }
    Lanes lanes() const;
    bool proved() const { return m_best.load() <= m_bound.load(); }
    double seconds() const;
    std::vector<SearchPoint> history() const;
    /// The best lanes. With SearchOptions::noise one entry for each entry of the history: the earlier best lanes, then
    /// the best.
    std::vector<Lanes> takeLanes();
    std::string exhausted() const; ///< the reason given with proveBound(); empty: none

    static constexpr Nanoseconds noValue = Nanoseconds{1} << 62;

private:
    const Design& m_design;
    const SearchModel& m_model;
    const SearchOptions& m_options;
    const Clock::time_point m_began;
    std::atomic<Nanoseconds> m_best{noValue}, m_bound;
    mutable std::mutex m_mutex;
    Lanes m_lanes;
    std::vector<Lanes> m_earlier; ///< with noise: the best lanes before m_lanes
    std::vector<SearchPoint> m_history;
    std::string m_exhausted;
};

} // namespace pipewright
