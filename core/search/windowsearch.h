// SPDX-License-Identifier: GPL-3.0-or-later
// Large-neighbourhood search among orders. The blocks that start within a window of time are removed: all of them or,
// in a longer window, those of some microbatches or devices, while the rest keep their order. Branch and bound then
// puts them back in every active order (Giffler and Thompson, 1960) that it reaches within a node limit. The schedule
// before the window gives each block's earliest start, the schedule after it the time to the end, so a node costs
// O(window). Between windows: O(tasks).
#pragma once

#include "core/search/searchmodel.h"

#include <functional>
#include <random>

namespace pipewright {

class WindowSearch {
public:
    WindowSearch(const SearchModel& model, SearchObjective objective);
    /// Spends `nodes` in windows around critical tasks, starting from `lanes`, which must be allowed, and leaves the
    /// best schedule there. Returns its value. Deterministic for a given random state.
    Nanoseconds improve(Lanes& lanes, std::int64_t nodes, std::mt19937_64& random, const std::function<bool()>& stop);
    std::int64_t work() const { return m_work + m_times.work(); } ///< tasks timed and nodes visited so far

private:
    /// A block of the window, numbered from 0.
    struct Piece {
        std::int32_t task = -1;
        int lane = 0;                                         ///< among the window's devices
        Nanoseconds head = 0;                                 ///< earliest start by the schedule before the window
        Nanoseconds tail = 0;                                 ///< from its start to the end of the schedule after it
        std::vector<std::pair<int, Nanoseconds>> followers{}; ///< pieces that depend on it, with the delay
        int waitsFor = 0;                                     ///< number of dependencies among the pieces
        Nanoseconds was = 0;                                  ///< its start before
        double rank = 0;                                      ///< higher ranks are tried first
    };
    struct LanePart {
        std::size_t device = 0, from = 0, to = 0; ///< the window's positions in the device's lane
        Nanoseconds free = 0;
        Bytes live = 0;
        Nanoseconds left = 0;       ///< unplaced work
        Nanoseconds leastAfter = 0; ///< least time after any of its pieces
    };

    void lookAt(const Lanes& lanes);
    bool openWindow(const Lanes& lanes, std::mt19937_64& random);
    void cut(const Lanes& lanes, Nanoseconds from, Nanoseconds to);
    void link(const Lanes& lanes, const std::vector<std::uint8_t>& free);
    void branch(std::size_t placed, Lanes& lanes);
    void judge(Lanes& lanes);
    double cost(const Lanes& lanes, Nanoseconds& value);

    const SearchModel& m_model;
    SearchObjective m_objective;
    LaneTimes m_times;
    std::int64_t m_work = 0;
    int m_mostJudged; ///< limit of whole schedules timed per window

    // The schedule around the window.
    std::vector<Nanoseconds> m_start, m_after; ///< per task: start, and time from its end to the end of the schedule
    std::vector<std::int32_t> m_critical;
    Nanoseconds m_value = 0;
    double m_cost = 0;

    // The window.
    std::vector<Piece> m_pieces;
    std::vector<LanePart> m_parts;
    std::vector<std::int32_t> m_pieceOf; ///< per task; -1: outside
    Nanoseconds m_target = 0;            ///< limit on the value
    std::int64_t m_nodes = 0;
    int m_judged = 0;
    std::vector<int> m_pending;
    std::vector<Nanoseconds> m_ready;
    std::vector<std::uint8_t> m_placed;
    std::vector<std::vector<std::int32_t>> m_orders; ///< per part, as placed so far
    Lanes m_best;                                    ///< the best of this window; empty: nothing as good as before
};

} // namespace pipewright
