// SPDX-License-Identifier: GPL-3.0-or-later
// Closed formulas of the start times per stage (arXiv 2405.15362: figures 1, 3 and 18, tables 8 and 9). O(stages).
#include "core/buildingblock/vhalf.h"

#include <array>
#include <utility>

namespace pipewright {

namespace {

/// starts(i): of F down, F up, gradient down and gradient up on device i.
template<typename Starts>
BuildingBlock vBlock(std::string name, int devices, Starts starts)
{
    BuildingBlock block;
    block.name = std::move(name);
    block.interval = 6;
    block.deviceOfStage.resize(2 * static_cast<std::size_t>(devices));
    for (int i = 0; i < devices; ++i) {
        const int up = 2 * devices - 1 - i;
        const std::array<int, 4> start = starts(i);
        block.deviceOfStage[i] = block.deviceOfStage[up] = i;
        block.passes.push_back({Op::F, i, start[0], 1});
        block.passes.push_back({Op::F, up, start[1], 1});
        block.passes.push_back({Op::I, up, start[2], 1});
        block.passes.push_back({Op::I, i, start[3], 1});
    }
    placeWeightGrads(block);
    return block;
}

} // namespace

BuildingBlock vMinBlock(int devices)
{
    const int p = devices, gap = p % 3 == 0 ? 2 : 0;
    return vBlock("V-Min", p, [=](int i) {
        return std::array{i, 2 * p - 1 - i, 2 * p + gap + i, 4 * p + gap - 1 - i};
    });
}

BuildingBlock vHalfBlock(int devices)
{
    const int p = devices, gap = p % 2 == 0 ? 3 : 0;
    return vBlock("V-Half", p, [=](int i) {
        return std::array{2 * i, 3 * p - 2 - i, 3 * p + gap + 2 * i - 1, 6 * p + gap - 2 - i};
    });
}

BuildingBlock vZeroBubbleBlock(int devices)
{
    const int p = devices;
    return vBlock("V-ZB", p, [=](int i) {
        return std::array{4 * i, 6 * p - 5 - 2 * i, 6 * p - 4 + 4 * i, 12 * p - 9 - 2 * i};
    });
}

BuildingBlock oneF1BVBlock(int devices)
{
    BuildingBlock block;
    block.name = "1F1B-V";
    block.backward = BackwardStyle::Full;
    block.interval = 6;
    block.deviceOfStage.resize(2 * devices);
    for (int stage = 0; stage < 2 * devices; ++stage) {
        block.deviceOfStage[stage] = stage < devices ? stage : 2 * devices - 1 - stage;
        block.passes.push_back({Op::F, stage, stage, 1});
    }
    // Backwards are consecutive; after every third one two units stay free for a pair of forwards.
    int now = 2 * devices + (devices % 3 == 0 ? 3 : 0);
    int turn = (3 - (devices + 2) % 3) % 3;
    for (int stage = 2 * devices; stage-- > 0;) {
        block.passes.push_back({Op::B, stage, now, 2});
        now += 2;
        if (++turn == 3) {
            turn = 0;
            now += 3;
        }
    }
    return block;
}

} // namespace pipewright
