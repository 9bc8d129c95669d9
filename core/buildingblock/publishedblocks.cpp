// SPDX-License-Identifier: GPL-3.0-or-later
// Closed formulas of the start times per stage (arXiv 2405.15362: figures 1, 3 and 18, tables 8 and 9). O(stages).
#include "core/buildingblock/publishedblocks.h"

#include <utility>

namespace pipewright {

namespace {

/// Stage r on device r; forward(r) and gradient(r) start a full backward of two units, or I with W at weightGrad(r).
template<typename Forward, typename Gradient>
BuildingBlock linearFull(std::string name, int devices, Forward forward, Gradient gradient)
{
    BuildingBlock block;
    block.name = std::move(name);
    block.backward = BackwardStyle::Full;
    block.interval = 3;
    for (int r = 0; r < devices; ++r) {
        block.deviceOfStage.push_back(r);
        block.passes.push_back({Op::F, r, forward(r), 1});
        block.passes.push_back({Op::B, r, gradient(r), 2});
    }
    return block;
}

template<typename Forward, typename Gradient, typename WeightGrad>
BuildingBlock linearSplit(std::string name, int devices, Forward forward, Gradient gradient, WeightGrad weightGrad)
{
    BuildingBlock block = linearFull(std::move(name), devices, forward, gradient);
    block.backward = BackwardStyle::Split;
    for (BuildingBlock::Pass& pass : block.passes)
        if (pass.op == Op::B) {
            pass.op = Op::I;
            pass.length = 1;
        }
    for (int r = 0; r < devices; ++r)
        block.passes.push_back({Op::W, r, weightGrad(r), 1});
    return block;
}

} // namespace

BuildingBlock oneF1BBlock(int devices)
{
    return linearFull(
        "1F1B", devices, [](int r) { return r; }, [=](int r) { return 3 * devices - 2 - 2 * r; });
}

BuildingBlock eagerBlock(int devices)
{
    return linearFull(
        "eager 1F1B", devices, [](int r) { return 4 * r; }, [=](int r) { return 6 * devices - 5 - 2 * r; });
}

BuildingBlock gpipeBlock(int devices, int microbatches)
{
    return linearFull(
        "GPipe", devices, [](int r) { return r; },
        [=](int r) { return 3 * (microbatches - 1) + 3 * devices - 2 - 2 * r; });
}

BuildingBlock zeroBubbleH1Block(int devices)
{
    return linearSplit(
        "ZB-H1", devices, [](int r) { return r; }, [=](int r) { return 3 * devices - 2 - 2 * r; },
        [=](int r) { return 3 * devices - 1 + r; });
}

BuildingBlock zeroBubbleH2Block(int devices)
{
    return linearSplit(
        "ZB-H2", devices, [](int r) { return 4 * r; }, [=](int r) { return 6 * devices - 5 - 2 * r; },
        [=](int r) { return 6 * devices - 4 + 4 * r; });
}

BuildingBlock interleavedBlock(int devices)
{
    BuildingBlock block;
    block.name = "interleaved 1F1B";
    block.backward = BackwardStyle::Full;
    block.interval = 6;
    // The second forward is offset by half an interval from the first, as are the two backwards.
    const int second = devices + (9 - devices % 6) % 6;
    const int gradient = devices + second;
    const int firstChunk = gradient + 3 + 6 * ((2 * devices - 3 + 5) / 6);
    for (int stage = 0; stage < 2 * devices; ++stage) {
        const int device = stage % devices, chunk = stage / devices;
        block.deviceOfStage.push_back(device);
        block.passes.push_back({Op::F, stage, device + chunk * second, 1});
        block.passes.push_back({Op::B, stage, (chunk == 1 ? gradient : firstChunk) + 2 * (devices - 1 - device), 2});
    }
    return block;
}

} // namespace pipewright
