// SPDX-License-Identifier: GPL-3.0-or-later
// Greedy sweep in time order for split backwards: a pass moves to the earliest idle cell after its data for which no
// peak in between exceeds the limit. Live counts are updated incrementally, so a move costs O(cells crossed).
#include "core/buildingblock/reorder.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pipewright {

namespace {

constexpr std::int16_t idle = -1;

/// A lane as cells with the live activations of each. In a lane without W an idle cell counts as a W while one is due.
/// `alive[t]` and `owed[t]` are the counts after cell t.
struct CellLane {
    std::vector<std::int16_t> cells; ///< as moved so far
    std::vector<int>
        nextIdle; ///< the cell itself when no visited pass takes it, else a later cell on the way to the next idle one
    std::vector<int> alive, owed; ///< `owed` is used, and kept up to date, only in lanes without W
    std::vector<Op> opOfRow;
    std::vector<int> gradientTimes; ///< sorted starts of the I that have been looked at
    bool hasWeightGrads = false;
    int peak = 0;

    explicit CellLane(const UnitGrid::Lane& lane) : cells(cellsOf(lane)), nextIdle(cells.size() + 1)
    {
        std::iota(nextIdle.begin(), nextIdle.end(), 0);
        for (const UnitGrid::Row& row : lane.rows)
            opOfRow.push_back(row.op);
        hasWeightGrads = lane.holds(Op::W);
        alive.resize(cells.size());
        owed.resize(cells.size());
        recount(0);
        peak = alive.empty() ? 0 : *std::max_element(alive.begin(), alive.end());
    }

    /// The first idle cell from `time` on; shortens the path through nextIdle.
    int idleFrom(int time)
    {
        const auto next = [&](int t) -> int& { return nextIdle[t]; };
        while (next(time) != time)
            time = next(time) = next(next(time));
        return time;
    }
    void take(int time) { nextIdle[time] = time + 1; }

    /// Mostly called in time order.
    void noteGradient(int time)
    {
        const bool last = gradientTimes.empty() || gradientTimes.back() < time;
        gradientTimes.insert(
            last ? gradientTimes.end() : std::upper_bound(gradientTimes.begin(), gradientTimes.end(), time), time);
    }

    void step(std::int16_t cell, int& live, int& owing) const
    {
        if (cell == idle) {
            if (!hasWeightGrads && owing > 0)
                --owing, --live;
            return;
        }
        const Op op = opOfRow[cell];
        live += activationsKept(op);
        owing += weightGradsOwed(op);
    }

    void recount(int from)
    {
        int live = from > 0 ? alive[from - 1] : 0;
        int owing = from > 0 ? owed[from - 1] : 0;
        for (std::size_t t = from; t < cells.size(); ++t) {
            step(cells[t], live, owing);
            alive[t] = live;
            owed[t] = owing;
        }
    }

    Op opAt(int time) const { return opOfRow[cells[time]]; }

    /// The first cell from `begin` on such that a move of the pass at `from` to any idle cell after it keeps the peak
    /// within `limit`. For earlier cells: fitsCounted() decides where idle cells count as W; elsewhere they exceed the
    /// limit.
    int safeFrom(int from, int begin, int limit) const
    {
        // A moved forward adds one, and where idle cells count as W the cell it takes may add another.
        const int most = makesActivation(opAt(from)) + !hasWeightGrads;
        if (most == 0)
            return begin;
        int safe = from;
        while (safe > begin && alive[safe - 1] + most <= limit)
            --safe;
        return safe;
    }

    /// True when moving the pass at `from` to the earlier idle cell `to` keeps the peak within `limit`; for lanes where
    /// idle cells count as W.
    bool fitsCounted(int from, int to, int limit) const
    {
        int live = to > 0 ? alive[to - 1] : 0;
        int owing = to > 0 ? owed[to - 1] : 0;
        for (int t = to; t < static_cast<int>(cells.size()); ++t) {
            step(t == to ? cells[from] : t == from ? idle : cells[t], live, owing);
            if (live > limit)
                return false;
            if (t >= from && live == alive[t] && owing == owed[t])
                return true; // the counts of later cells do not change
        }
        return true;
    }

    /// Recounts from `to` until the counts agree again, soon after `from`; recounting to the end would be quadratic.
    void move(int from, int to)
    {
        if (hasWeightGrads) { // idle cells do not count: only the pass itself moves
            const int more = activationsKept(opAt(from));
            for (int t = to; more != 0 && t < from; ++t)
                alive[t] += more;
            std::swap(cells[from], cells[to]);
            return;
        }
        std::swap(cells[from], cells[to]);
        int live = to > 0 ? alive[to - 1] : 0;
        int owing = to > 0 ? owed[to - 1] : 0;
        for (std::size_t t = to; t < cells.size(); ++t) {
            step(cells[t], live, owing);
            if (t >= static_cast<std::size_t>(from) && live == alive[t] && owing == owed[t])
                return;
            alive[t] = live;
            owed[t] = owing;
        }
    }
};

/// One sweep over all passes by time. Warm-up lasts until the first gradient reaches stage 0; cool-down begins after
/// the next last forward of a device's first chunk. In between nothing moves.
class Sweep {
public:
    Sweep(UnitGrid& grid, bool sharePeak) : m_grid(grid)
    {
        int peak = 0;
        for (const UnitGrid::Lane& lane : grid.lanes) {
            peak = std::max(peak, m_lanes.emplace_back(lane).peak);
            m_next.emplace_back(lane.rows.size(), 0);
        }
        for (const CellLane& lane : m_lanes)
            m_limit.push_back(sharePeak ? peak : lane.peak);
    }

    void run(bool moveWarmUp)
    {
        const Moment begin{0, 0}, end{longest(), 0};
        const Moment steady = std::min(firstGradient(), end);
        moveWarmUp ? move(begin, steady) : note(begin, steady);
        const Moment last = std::min(nextLastForward(steady), end);
        note(steady, last);
        if (last == end)
            return;
        const Moment behind{last.time, last.device + 1};
        note(last, behind);
        move(behind, end);
    }

private:
    /// Passes are visited by time, then device.
    struct Moment {
        int time, device;
        auto operator<=>(const Moment&) const = default;
    };

    int longest() const
    {
        std::size_t cells = 0;
        for (const CellLane& lane : m_lanes)
            cells = std::max(cells, lane.cells.size());
        return static_cast<int>(cells);
    }

    /// The first gradient of stage 0; after all passes when there is none.
    Moment firstGradient() const
    {
        for (std::size_t d = 0; d < m_lanes.size(); ++d)
            for (const UnitGrid::Row& row : m_grid.lanes[d].rows)
                if (row.op == Op::I && row.stage == 0 && !row.start.empty())
                    return {row.start.front(), static_cast<int>(d)};
        return {longest(), 0};
    }

    /// The next last forward of a device's first chunk, from `from` on.
    Moment nextLastForward(Moment from) const
    {
        Moment next{longest(), 0};
        for (std::size_t d = 0; d < m_lanes.size(); ++d) {
            const std::vector<UnitGrid::Row>& rows = m_grid.lanes[d].rows;
            if (rows.empty() || rows.front().start.empty())
                continue;
            const Moment last{rows.front().start.back(), static_cast<int>(d)};
            if (last >= from)
                next = std::min(next, last);
        }
        return next;
    }

    /// The cells of a device from one moment to another.
    std::pair<int, int> cellsBetween(Moment from, Moment to, std::size_t device) const
    {
        const auto at = [&](Moment m) {
            return std::min(m.time + (static_cast<int>(device) < m.device),
                            static_cast<int>(m_lanes[device].cells.size()));
        };
        return {at(from), at(to)};
    }

    void note(Moment from, Moment to)
    {
        for (std::size_t d = 0; d < m_lanes.size(); ++d) {
            CellLane& lane = m_lanes[d];
            for (auto [t, end] = cellsBetween(from, to, d); t < end; ++t) {
                const std::int16_t row = lane.cells[t];
                if (row == idle)
                    continue;
                lane.take(t);
                ++m_next[d][row];
                if (lane.opOfRow[row] == Op::I)
                    lane.noteGradient(t);
            }
        }
    }

    /// Moves each pass to its earliest fit.
    void move(Moment from, Moment to)
    {
        for (int time = from.time; time <= to.time; ++time)
            for (std::size_t d = 0; d < m_lanes.size(); ++d) {
                const auto [begin, end] = cellsBetween(from, to, d);
                if (time < begin || time >= end)
                    continue;
                const int row = m_lanes[d].cells[time];
                if (row == idle)
                    continue;
                const UnitGrid::Place place{time, static_cast<int>(d), row, m_next[d][row]++};
                settle(place, earliest(place));
            }
    }

    UnitGrid::Row& rowAt(const UnitGrid::Place& place) { return m_grid.lanes[place.device].rows[place.row]; }

    int earliest(const UnitGrid::Place& place)
    {
        const UnitGrid::Row& row = rowAt(place);
        CellLane& lane = m_lanes[place.device];
        int after = -1;
        if (row.op == Op::W)
            after = lane.gradientTimes[place.microbatch];
        else if (row.sourceDevice >= 0)
            after = m_grid.lanes[row.sourceDevice].rows[row.sourceRow].start[place.microbatch];
        if (place.microbatch > 0)
            after = std::max(after, row.start[place.microbatch - 1]);
        int t = lane.idleFrom(after + 1);
        if (t >= place.time)
            return place.time;
        const int safe = lane.safeFrom(place.time, t, m_limit[place.device]);
        for (; t < safe; t = lane.idleFrom(lane.hasWeightGrads ? safe : t + 1))
            if (!lane.hasWeightGrads && lane.fitsCounted(place.time, t, m_limit[place.device]))
                return t;
        return std::min(t, place.time);
    }

    void settle(const UnitGrid::Place& place, int time)
    {
        CellLane& lane = m_lanes[place.device];
        UnitGrid::Row& row = rowAt(place);
        if (time != place.time) {
            lane.move(place.time, time);
            row.start[place.microbatch] = time;
        }
        lane.take(time);
        if (row.op == Op::I)
            lane.noteGradient(time);
    }

    UnitGrid& m_grid;
    std::vector<CellLane> m_lanes;
    std::vector<int> m_limit;
    std::vector<std::vector<int>> m_next; ///< per device and row: the microbatch that comes next
};

} // namespace

UnitGrid reorderSplit(UnitGrid grid, bool sharePeak)
{
    grid.removeWeightGrads();
    grid.fillWeightGrads(false);
    Sweep(grid, sharePeak).run(true);
    grid.squeeze();
    grid.removeWeightGrads();
    Sweep(grid, sharePeak).run(false);
    grid.fillWeightGrads(false);
    grid.squeeze();
    grid.removeWeightGrads();
    grid.fillWeightGrads(true);
    return grid;
}

} // namespace pipewright
