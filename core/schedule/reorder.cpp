// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/reorder.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

constexpr std::int16_t idle = -1;

/// A lane as cells, with what is alive while each of them runs. In a lane without W an idle cell stands for
/// one if any is owed. `alive[t]` and `owed[t]` are the counts after cell t.
struct CellLane {
    std::vector<std::int16_t> cells; ///< as moved so far
    std::vector<std::int16_t> moved; ///< the same, but only passes that have been looked at
    std::vector<int> alive, owed;
    std::vector<Op> opOfRow;
    std::vector<int> gradientTimes; ///< sorted starts of the I that have been looked at
    bool hasWeightGrads = false;
    int peak = 0;

    explicit CellLane(const UnitGrid::Lane& lane) : cells(cellsOf(lane)), moved(cells.size(), idle)
    {
        for (const UnitGrid::Row& row : lane.rows)
            opOfRow.push_back(row.op);
        hasWeightGrads = lane.holds(Op::W);
        alive.resize(cells.size());
        owed.resize(cells.size());
        recount(0);
        peak = alive.empty() ? 0 : *std::max_element(alive.begin(), alive.end());
    }

    /// Most come in order of time.
    void noteGradient(int time)
    {
        const bool last = gradientTimes.empty() || gradientTimes.back() < time;
        gradientTimes.insert(last ? gradientTimes.end() : std::upper_bound(gradientTimes.begin(), gradientTimes.end(), time), time);
    }

    void step(std::int16_t cell, int& live, int& owing) const
    {
        if (cell == idle) {
            if (!hasWeightGrads && owing > 0)
                --owing, --live;
            return;
        }
        const Op op = opOfRow[static_cast<std::size_t>(cell)];
        live += op == Op::F ? 1 : op == Op::W ? -1 : 0;
        owing += op == Op::I ? 1 : op == Op::W ? -1 : 0;
    }

    void recount(int from)
    {
        int live = from > 0 ? alive[static_cast<std::size_t>(from) - 1] : 0;
        int owing = from > 0 ? owed[static_cast<std::size_t>(from) - 1] : 0;
        for (std::size_t t = static_cast<std::size_t>(from); t < cells.size(); ++t) {
            step(cells[t], live, owing);
            alive[t] = live;
            owed[t] = owing;
        }
    }

    /// Would the peak stay within `limit` with the pass at `from` moved to the idle cell `to` before it?
    bool fits(int from, int to, int limit) const
    {
        int live = to > 0 ? alive[static_cast<std::size_t>(to) - 1] : 0;
        int owing = to > 0 ? owed[static_cast<std::size_t>(to) - 1] : 0;
        for (int t = to; t < static_cast<int>(cells.size()); ++t) {
            const auto at = static_cast<std::size_t>(t);
            step(t == to ? cells[static_cast<std::size_t>(from)] : t == from ? idle : cells[at], live, owing);
            if (live > limit)
                return false;
            if (t >= from && live == alive[at] && owing == owed[at])
                return true; // from here on nothing differs
        }
        return true;
    }

    /// Counts anew from `to` only until nothing differs any more, which is soon after `from`: to the end of the
    /// lane it would be quadratic in the microbatches.
    void move(int from, int to)
    {
        std::swap(cells[static_cast<std::size_t>(from)], cells[static_cast<std::size_t>(to)]);
        int live = to > 0 ? alive[static_cast<std::size_t>(to) - 1] : 0;
        int owing = to > 0 ? owed[static_cast<std::size_t>(to) - 1] : 0;
        for (std::size_t t = static_cast<std::size_t>(to); t < cells.size(); ++t) {
            step(cells[t], live, owing);
            if (t >= static_cast<std::size_t>(from) && live == alive[t] && owing == owed[t])
                return;
            alive[t] = live;
            owed[t] = owing;
        }
    }
};

enum class Phase { WarmUp, Steady, CoolDown };

/// One sweep over all passes by time. Warm-up lasts until the first gradient reaches stage 0; cool-down begins
/// behind the next last forward of a device's first chunk.
class Sweep {
public:
    Sweep(UnitGrid& grid, bool sharePeak) : m_grid(grid)
    {
        int peak = 0;
        for (const UnitGrid::Lane& lane : grid.lanes)
            peak = std::max(peak, m_lanes.emplace_back(lane).peak);
        for (const CellLane& lane : m_lanes)
            m_limit.push_back(sharePeak ? peak : lane.peak);
    }

    void run(bool moveWarmUp)
    {
        Phase phase = Phase::WarmUp;
        m_grid.eachByTime([&](const UnitGrid::Place& place) {
            const UnitGrid::Row& row = rowAt(place);
            if (phase == Phase::WarmUp && row.op == Op::I && row.stage == 0)
                phase = Phase::Steady;
            if (phase == Phase::Steady && place.row == 0 && place.microbatch + 1 == static_cast<int>(row.start.size())) {
                phase = Phase::CoolDown;
                settle(place, place.time);
                return;
            }
            const bool moves = phase == Phase::CoolDown || (phase == Phase::WarmUp && moveWarmUp);
            settle(place, moves ? earliest(place) : place.time);
        });
    }

private:
    UnitGrid::Row& rowAt(const UnitGrid::Place& place)
    {
        return m_grid.lanes[static_cast<std::size_t>(place.device)].rows[static_cast<std::size_t>(place.row)];
    }

    int earliest(const UnitGrid::Place& place)
    {
        const auto d = static_cast<std::size_t>(place.device);
        const auto m = static_cast<std::size_t>(place.microbatch);
        const UnitGrid::Row& row = rowAt(place);
        const CellLane& lane = m_lanes[d];
        int after = -1;
        if (row.op == Op::W)
            after = lane.gradientTimes[m];
        else if (row.sourceDevice >= 0)
            after = m_grid.lanes[static_cast<std::size_t>(row.sourceDevice)].rows[static_cast<std::size_t>(row.sourceRow)].start[m];
        if (m > 0)
            after = std::max(after, row.start[m - 1]);
        for (int t = after + 1; t < place.time; ++t)
            if (lane.moved[static_cast<std::size_t>(t)] == idle && lane.fits(place.time, t, m_limit[d]))
                return t;
        return place.time;
    }

    void settle(const UnitGrid::Place& place, int time)
    {
        CellLane& lane = m_lanes[static_cast<std::size_t>(place.device)];
        UnitGrid::Row& row = rowAt(place);
        if (time != place.time) {
            lane.move(place.time, time);
            row.start[static_cast<std::size_t>(place.microbatch)] = time;
        }
        lane.moved[static_cast<std::size_t>(time)] = static_cast<std::int16_t>(place.row);
        if (row.op == Op::I)
            lane.noteGradient(time);
    }

    UnitGrid& m_grid;
    std::vector<CellLane> m_lanes;
    std::vector<int> m_limit;
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
