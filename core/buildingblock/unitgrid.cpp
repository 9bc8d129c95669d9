// SPDX-License-Identifier: GPL-3.0-or-later
// Repeats, squeezes and fills grids. Squeezing is one sweep in time order over all passes, O(passes).
#include "core/buildingblock/unitgrid.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipewright {

int UnitGrid::Lane::end() const
{
    int last = 0;
    for (const Row& row : rows)
        if (!row.start.empty())
            last = std::max(last, row.start.back() + row.length);
    return last;
}

bool UnitGrid::Lane::holds(Op op) const
{
    return std::any_of(rows.begin(), rows.end(), [op](const Row& row) { return row.op == op; });
}

UnitGrid::UnitGrid(const BuildingBlock& block, int microbatches) : lanes(block.devices())
{
    std::vector<BuildingBlock::Pass> passes = block.passes;
    std::sort(passes.begin(), passes.end(), [](const auto& a, const auto& b) {
        return passRank(a.op) != passRank(b.op) ? passRank(a.op) < passRank(b.op)
               : makesActivation(a.op)          ? a.stage < b.stage
                                                : a.stage > b.stage;
    });
    for (const BuildingBlock::Pass& pass : passes) {
        Row row{pass.op, pass.stage, pass.length, -1, -1, std::vector<int>(microbatches)};
        for (std::size_t m = 0; m < row.start.size(); ++m)
            row.start[m] = pass.start + static_cast<int>(m) * block.interval;
        lanes[block.deviceOfStage[pass.stage]].rows.push_back(std::move(row));
    }
    linkInputs();
}

void UnitGrid::linkInputs()
{
    int stages = 0;
    for (const Lane& lane : lanes)
        for (const Row& row : lane.rows)
            stages = std::max(stages, row.stage + 1);
    std::vector<std::pair<int, int>> forward(stages, {-1, -1}), gradient(stages, {-1, -1});
    for (std::size_t d = 0; d < lanes.size(); ++d)
        for (std::size_t r = 0; r < lanes[d].rows.size(); ++r) {
            const Row& row = lanes[d].rows[r];
            if (const int step = stageStep(row.op); step != 0)
                (step > 0 ? forward : gradient)[row.stage] = {static_cast<int>(d), static_cast<int>(r)};
        }
    for (Lane& lane : lanes)
        for (Row& row : lane.rows) {
            std::pair<int, int> source{-1, -1};
            if (const int step = stageStep(row.op); step == 0)
                source = gradient[row.stage];
            else if (step > 0 && row.stage > 0)
                source = forward[row.stage - 1];
            else if (step < 0)
                source = row.stage + 1 < stages ? gradient[row.stage + 1] : forward[row.stage];
            std::tie(row.sourceDevice, row.sourceRow) = source;
        }
}

void UnitGrid::squeeze()
{
    std::vector<int> free(lanes.size(), 0);
    eachByTime([&](const Place& place) {
        Row& row = lanes[place.device].rows[place.row];
        int start = free[place.device];
        if (row.sourceDevice >= 0) {
            const Row& source = lanes[row.sourceDevice].rows[row.sourceRow];
            start = std::max(start, source.start[place.microbatch] + source.length);
        }
        row.start[place.microbatch] = start;
        free[place.device] = start + row.length;
    });
}

int UnitGrid::span() const
{
    int longest = 0;
    for (const Lane& lane : lanes) {
        int begin = lane.end();
        for (const Row& row : lane.rows)
            begin = std::min(begin, row.start.empty() ? begin : row.start.front());
        longest = std::max(longest, lane.end() - begin);
    }
    return longest;
}

void UnitGrid::removeWeightGrads()
{
    for (Lane& lane : lanes)
        std::erase_if(lane.rows, [](const Row& row) { return row.op == Op::W; });
}

void UnitGrid::fillWeightGrads(bool dealByRow)
{
    for (std::size_t d = 0; d < lanes.size(); ++d) {
        Lane& lane = lanes[d];
        const std::vector<std::int16_t> cells = cellsOf(lane);
        std::vector<int> rowOf(lane.rows.size(), -1); // W row of each I row
        std::vector<Row> owing;
        std::vector<int> owed;
        for (std::size_t r = 0; r < lane.rows.size(); ++r) {
            if (lane.rows[r].op != Op::I)
                continue;
            if (owing.empty() || dealByRow) {
                // With a single row its microbatch numbers count all gradients of the lane.
                owing.push_back({Op::W,
                                 lane.rows[r].stage,
                                 1,
                                 dealByRow ? static_cast<int>(d) : -1,
                                 dealByRow ? static_cast<int>(r) : -1,
                                 {}});
                owed.push_back(0);
            }
            rowOf[r] = static_cast<int>(owing.size()) - 1;
        }
        int time = 0;
        for (; time < static_cast<int>(cells.size()); ++time) {
            const int row = cells[time];
            if (row >= 0) {
                if (rowOf[row] >= 0)
                    ++owed[rowOf[row]];
                continue;
            }
            const auto oldest = std::find_if(owed.begin(), owed.end(), [](int n) { return n > 0; });
            if (oldest == owed.end())
                continue;
            --*oldest;
            owing[oldest - owed.begin()].start.push_back(time);
        }
        for (std::size_t k = 0; k < owing.size(); ++k)
            for (; owed[k] > 0; --owed[k])
                owing[k].start.push_back(time++);
        lane.rows.insert(lane.rows.end(), owing.begin(), owing.end());
    }
}

std::vector<std::vector<Block>> UnitGrid::order() const
{
    std::vector<std::vector<Block>> order(lanes.size());
    for (std::size_t d = 0; d < lanes.size(); ++d) {
        std::size_t passes = 0;
        for (const Row& row : lanes[d].rows)
            passes += row.start.size();
        order[d].reserve(passes);
        std::vector<int> next(lanes[d].rows.size(), 0); // the passes of a row run in order
        const std::vector<std::int16_t> cells = cellsOf(lanes[d]);
        for (std::size_t t = 0; t < cells.size();) {
            if (cells[t] < 0) {
                ++t;
                continue;
            }
            const std::size_t r = cells[t];
            order[d].push_back({lanes[d].rows[r].op, lanes[d].rows[r].stage, next[r]++});
            t += lanes[d].rows[r].length;
        }
    }
    return order;
}

std::vector<std::int16_t> cellsOf(const UnitGrid::Lane& lane)
{
    std::vector<std::int16_t> cells(lane.end(), -1);
    std::int16_t* const first = cells.data();
    for (std::size_t r = 0; r < lane.rows.size(); ++r)
        for (int i = 0; i < lane.rows[r].length; ++i)
            for (const int start : lane.rows[r].start)
                first[start + i] = static_cast<std::int16_t>(r);
    return cells;
}

} // namespace pipewright
