// SPDX-License-Identifier: GPL-3.0-or-later
// Placements and the two list patterns of the papers: alternate F and B, and zero-bubble. O(blocks of a device).
#include "core/families/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipewright {

std::vector<int> linearPlacement(int devices)
{
    return loopedPlacement(devices, 1);
}

std::vector<int> loopedPlacement(int devices, int chunks)
{
    std::vector<int> deviceOfStage(static_cast<std::size_t>(devices) * static_cast<std::size_t>(chunks));
    for (std::size_t stage = 0; stage < deviceOfStage.size(); ++stage)
        deviceOfStage[stage] = static_cast<int>(stage % static_cast<std::size_t>(devices));
    return deviceOfStage;
}

std::vector<int> reversed(const std::vector<int>& deviceOfStage)
{
    return {deviceOfStage.rbegin(), deviceOfStage.rend()};
}

Diagnostics checkTwoWays(const FamilyParameters& p)
{
    Diagnostics diagnostics;
    if (p.devices % 2 != 0)
        diagnostics.push_back({Severity::Error, "--devices", fmt::format("{} devices", p.devices),
                               "the two directions meet in the middle: use an even number"});
    if (p.microbatches % 2 != 0)
        diagnostics.push_back({Severity::Error, "--microbatches", fmt::format("{} microbatches", p.microbatches),
                               "each direction takes half of them: use an even number"});
    return diagnostics;
}

LaneBuilder::LaneBuilder(std::vector<Block>& lane, int stage, int microbatches)
    : m_lane(lane), m_stage(stage), m_microbatches(microbatches)
{
}

void LaneBuilder::next(Op op)
{
    if (left(op))
        m_lane.push_back({op, m_stage, m_placed[static_cast<int>(op)]++});
}

void LaneBuilder::rest(Op op)
{
    while (left(op))
        next(op);
}

std::vector<Block> alternate(int stage, int microbatches, int warmUp)
{
    std::vector<Block> blocks;
    blocks.reserve(2 * microbatches);
    LaneBuilder lane(blocks, stage, microbatches);
    for (int i = 0; i < warmUp; ++i)
        lane.next(Op::F);
    while (lane.left(Op::B)) {
        lane.next(Op::B);
        lane.next(Op::F);
    }
    return blocks;
}

std::vector<Block> zeroBubble(int stage, int microbatches, int warmUp, int delay)
{
    std::vector<Block> blocks;
    blocks.reserve(3 * microbatches);
    LaneBuilder lane(blocks, stage, microbatches);
    for (int i = 0; i < warmUp; ++i)
        lane.next(Op::F);
    while (lane.left(Op::I)) {
        lane.next(Op::I);
        if (lane.placed(Op::I) - lane.placed(Op::W) > delay)
            lane.next(Op::W);
        lane.next(Op::F);
    }
    lane.rest(Op::W);
    return blocks;
}

} // namespace pipewright
