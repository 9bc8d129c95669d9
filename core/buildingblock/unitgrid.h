// SPDX-License-Identifier: GPL-3.0-or-later
// A repeated building block: every pass of every microbatch at an integer time. The intermediate form between the
// building block, with offsets, and the schedule, with orders only; reordering works on it.
#pragma once

#include "core/buildingblock/buildingblock.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipewright {

class UnitGrid {
public:
    /// One pass of the block, for all microbatches.
    struct Row {
        Op op = Op::F;
        int stage = 0;
        int length = 1;
        int sourceDevice = -1, sourceRow = -1; ///< the row whose result it takes; -1: F of stage 0
        std::vector<int> start;                ///< per microbatch, ascending
    };
    /// Rows of each device: F by stage, then B or I by descending stage, then W likewise.
    struct Lane {
        std::vector<Row> rows;
        int end() const; ///< when its last pass ends
        bool holds(Op op) const;
    };
    struct Place {
        int time, device, row, microbatch;
    };

    UnitGrid(const BuildingBlock& block, int microbatches);

    std::vector<Lane> lanes;

    /// Calls visit(place) for all passes by time, then device, with their current positions: the visitor may move them.
    /// The passes of a row are in ascending order and no two of a device overlap. O(cells).
    template<typename Visit>
    void eachByTime(Visit visit) const;
    /// Moves every pass as early as its input and its device's order allow. O(passes).
    void squeeze();
    int span() const; ///< longest time from a lane's first pass to the end of its last
    void removeWeightGrads();
    /// Puts outstanding weight gradients into idle cells, the rest after the lane's end. `dealByRow`: one row of W per
    /// row of I, oldest gradient first; else a single row.
    void fillWeightGrads(bool dealByRow);
    std::vector<std::vector<Block>> order() const;

private:
    void linkInputs();
};

/// The row index in each cell of a lane, or -1.
std::vector<std::int16_t> cellsOf(const UnitGrid::Lane& lane);

template<typename Visit>
void UnitGrid::eachByTime(Visit visit) const
{
    // Merged cell by cell: sorting would need a list of all passes.
    struct Cursor {
        std::vector<std::int16_t> cells;
        std::vector<int> next, length; ///< per row: the microbatch that comes, and its pass's length
        int busyUntil = 0;
    };
    std::vector<Cursor> cursors;
    int end = 0;
    for (const Lane& lane : lanes) {
        Cursor& cursor = cursors.emplace_back();
        cursor.cells = cellsOf(lane);
        cursor.next.resize(lane.rows.size(), 0);
        for (const Row& row : lane.rows)
            cursor.length.push_back(row.length);
        end = std::max(end, static_cast<int>(cursor.cells.size()));
    }
    for (int time = 0; time < end; ++time)
        for (std::size_t d = 0; d < cursors.size(); ++d) {
            Cursor& cursor = cursors[d];
            if (time < cursor.busyUntil || time >= static_cast<int>(cursor.cells.size()))
                continue;
            const int row = cursor.cells[time];
            if (row < 0)
                continue;
            cursor.busyUntil = time + cursor.length[row];
            visit(Place{time, static_cast<int>(d), row, cursor.next[row]++});
        }
}

} // namespace pipewright
