// SPDX-License-Identifier: GPL-3.0-or-later
// A building block repeated: every pass of every microbatch at a whole time. Between the block, whose order
// is fixed by its offsets, and the schedule, which has an order and no times. What reordering works on.
#pragma once

#include "core/schedule/buildingblock.h"

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
        std::vector<int> start;                ///< per microbatch
    };
    /// On each device: F by stage, then B or I by falling stage, then W likewise.
    struct Lane {
        std::vector<Row> rows;
        int end() const; ///< when its last pass ends
        bool holds(Op op) const;
    };
    struct Place {
        int time, device, row, microbatch;
        auto operator<=>(const Place&) const = default;
    };

    UnitGrid(const BuildingBlock& block, int microbatches);

    std::vector<Lane> lanes;

    /// All passes by time, then device, then row. O(passes).
    std::vector<Place> byTime() const;
    /// Every pass as early as its input and the order of its device allow. The order stays. O(passes).
    void squeeze();
    int span() const; ///< longest time from a lane's first pass to the end of its last
    void removeWeightGrads();
    /// Puts the weight gradients that are owed into the idle cells of each lane, and those left behind its end.
    /// `dealByRow`: a row of W per row of I, rows in turn by age of the gradient; else one row of all, in order.
    void fillWeightGrads(bool dealByRow);
    std::vector<std::vector<Block>> order() const;

private:
    void linkInputs();
};

/// What stands in each cell of a lane: row index, or -1.
std::vector<std::int16_t> cellsOf(const UnitGrid::Lane& lane);

} // namespace pipewright
