// SPDX-License-Identifier: GPL-3.0-or-later
// Large-neighbourhood search among orders: what starts within a window of time is taken out of its lanes, all of it,
// or in a longer window some microbatches or some devices while the rest keeps its order, and is put back in every
// active order (Giffler and Thompson) that branch and bound gets to in so many nodes. What lies before the window
// says when its blocks may start, what lies behind it how long the schedule goes on after each, so a node costs as
// much as the window is large and not the schedule. Between windows: O(tasks).
#pragma once

#include "core/search/searchmodel.h"

#include <functional>
#include <random>

namespace pipewright {

class WindowSearch {
public:
    WindowSearch(const SearchModel& model, SearchObjective objective);
    /// Goes through so many nodes, in windows around what the value hangs on, from `lanes`, which must be allowed, and
    /// leaves the best found in it. Returns its value. What follows from the random numbers is the same every time.
    Nanoseconds improve(Lanes& lanes, std::int64_t nodes, std::mt19937_64& random, const std::function<bool()>& stop);
    std::int64_t work() const { return m_work + m_times.work(); } ///< tasks timed and nodes looked at so far

private:
    /// A block of the window, numbered from 0.
    struct Piece {
        std::int32_t task = -1;
        int lane = 0;         ///< among the window's devices
        Nanoseconds head = 0; ///< may start then, by what lies before the window
        Nanoseconds tail = 0; ///< from its start to the end of all that comes after it, by data and behind the window
        std::vector<std::pair<int, Nanoseconds>> followers{}; ///< pieces that wait for its end, and how much longer
        int waitsFor = 0;                                     ///< pieces that it waits for
        Nanoseconds was = 0;                                  ///< its start before
        double rank = 0; ///< of two that could be next the higher one is tried first
    };
    struct LanePart {
        std::size_t device = 0, from = 0, to = 0; ///< the positions that the window takes of the device's lane
        Nanoseconds free = 0;
        Bytes live = 0;
        Nanoseconds left = 0;       ///< work that is not placed
        Nanoseconds leastAfter = 0; ///< behind any of its pieces
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
    int m_mostJudged; ///< whole schedules that a window may have timed

    // The schedule that windows are opened in.
    std::vector<Nanoseconds> m_start, m_after; ///< per task; from its end on, by lane and data
    std::vector<std::int32_t> m_critical;
    Nanoseconds m_value = 0;
    double m_cost = 0;

    // The window.
    std::vector<Piece> m_pieces;
    std::vector<LanePart> m_parts;
    std::vector<std::int32_t> m_pieceOf; ///< per task; -1: outside
    Nanoseconds m_target = 0;            ///< what may not be passed
    std::int64_t m_nodes = 0;
    int m_judged = 0;
    std::vector<int> m_pending;
    std::vector<Nanoseconds> m_ready;
    std::vector<std::uint8_t> m_placed;
    std::vector<std::vector<std::int32_t>> m_orders; ///< per part, as placed so far
    Lanes m_best;                                    ///< the best that the window has given; empty: nothing as good
};

} // namespace pipewright
