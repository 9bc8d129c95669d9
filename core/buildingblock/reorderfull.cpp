// SPDX-License-Identifier: GPL-3.0-or-later
// The greedy sweep of reorder.h for full backwards, on lanes of taken and free cells with the live count after each.
// O(passes + cells crossed).
#include "core/buildingblock/reorder.h"

#include <algorithm>

namespace pipewright {

namespace {

/// A lane as cells that are taken or not, with the activations alive after each.
struct Occupancy {
    std::vector<char> taken;
    std::vector<int> alive;
    int peak = 0;

    explicit Occupancy(const UnitGrid::Lane& lane)
    {
        const std::vector<std::int16_t> cells = cellsOf(lane);
        alive.resize(cells.size());
        for (const std::int16_t cell : cells)
            taken.push_back(cell >= 0);
        for (const UnitGrid::Row& row : lane.rows)
            for (const int start : row.start)
                alive[makesActivation(row.op) ? start : start + row.length - 1] += activationsKept(row.op);
        for (std::size_t t = 1; t < alive.size(); ++t)
            alive[t] += alive[t - 1];
        peak = alive.empty() ? 0 : *std::max_element(alive.begin(), alive.end());
    }

    bool isFree(int from, int length) const
    {
        return std::none_of(taken.begin() + from, taken.begin() + from + length, [](char c) { return c != 0; });
    }
    void set(int from, int length, char value) { std::fill_n(taken.begin() + from, length, value); }
};

} // namespace

UnitGrid reorderFull(UnitGrid grid, bool sharePeak)
{
    std::vector<Occupancy> lanes;
    int peak = 0;
    for (const UnitGrid::Lane& lane : grid.lanes)
        peak = std::max(peak, lanes.emplace_back(lane).peak);

    grid.eachByTime([&](const UnitGrid::Place& place) {
        UnitGrid::Row& row = grid.lanes[place.device].rows[place.row];
        Occupancy& lane = lanes[place.device];
        int from = 0;
        if (place.microbatch > 0)
            from = row.start[place.microbatch - 1] + row.length;
        if (row.sourceDevice >= 0) {
            const UnitGrid::Row& source = grid.lanes[row.sourceDevice].rows[row.sourceRow];
            from = std::max(from, source.start[place.microbatch] + source.length);
        }
        if (makesActivation(row.op)) {
            const int limit = sharePeak ? peak : lane.peak;
            int reach = place.time;
            while (reach > from && lane.alive[reach - 1] < limit)
                --reach;
            from = reach;
        }
        while (from < place.time && !lane.isFree(from, row.length)) // its own cells count as taken
            ++from;
        if (from >= place.time)
            return;
        lane.set(from, row.length, 1);
        lane.set(place.time, row.length, 0);
        const int counts = makesActivation(row.op) ? 0 : row.length - 1; // from this cell of the pass on
        for (int t = from + counts; t < place.time + counts; ++t)
            lane.alive[t] += activationsKept(row.op);
        row.start[place.microbatch] = from;
    });
    return grid;
}

} // namespace pipewright
