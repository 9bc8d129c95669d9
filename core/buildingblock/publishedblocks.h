// SPDX-License-Identifier: GPL-3.0-or-later
// The published schedules that are a repeated building block (arXiv 2405.15362: figures 1, 3 and 18, tables 8
// and 9). F, I and W take one unit and a full B two.
#pragma once

#include "core/buildingblock/buildingblock.h"

namespace pipewright {

// One stage per device. Devices r from 0 have a lifespan of T times
BuildingBlock oneF1BBlock(int devices);                  // p - r
BuildingBlock eagerBlock(int devices);                   // 2(p - r) - 1
BuildingBlock gpipeBlock(int devices, int microbatches); // that of a whole step
BuildingBlock zeroBubbleH1Block(int devices);            // p
BuildingBlock zeroBubbleH2Block(int devices);            // 2p - 1
/// Two chunks per device in a loop: interleaved 1F1B at uniform distances.
BuildingBlock interleavedBlock(int devices);

// Two chunks per device in a V, which balances the lifespans: about 2p/3, p and 2p chunks on every device.
BuildingBlock vMinBlock(int devices);
BuildingBlock vHalfBlock(int devices);
BuildingBlock vZeroBubbleBlock(int devices);
/// The same V with a full backward, 2/3 of the memory of 1F1B.
BuildingBlock oneF1BVBlock(int devices);

/// A V from its four legs on device i: start(0..3, i) is F down, F up, gradient down and gradient up.
template<typename Start>
BuildingBlock vBlock(int devices, Start start)
{
    BuildingBlock block;
    block.interval = 6;
    block.deviceOfStage.resize(2 * static_cast<std::size_t>(devices));
    for (int i = 0; i < devices; ++i) {
        const int up = 2 * devices - 1 - i;
        block.deviceOfStage[i] = block.deviceOfStage[up] = i;
        block.passes.push_back({Op::F, i, start(0, i), 1});
        block.passes.push_back({Op::F, up, start(1, i), 1});
        block.passes.push_back({Op::I, up, start(2, i), 1});
        block.passes.push_back({Op::I, i, start(3, i), 1});
    }
    placeWeightGrads(block);
    return block;
}

} // namespace pipewright
