// SPDX-License-Identifier: GPL-3.0-or-later
// DualPipe and DualPipeV, the eight steps of DeepSeek's published code. A device works in two directions:
// direction 0 enters the pipeline at its nearer end, direction 1 comes back from the far one. DualPipe has a
// replica per direction; DualPipeV folds one model into a V, so that its two chunks are the directions.
// F and B of different microbatches overlap in the steady state; W halves fill the bubble.
#include "core/families/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

namespace pipewright {

namespace {

/// A device's list under construction.
class DualLane {
public:
    struct Direction {
        int stage, firstMicrobatch, replica;
    };
    DualLane(std::array<Direction, 2> directions, std::vector<Block>& blocks, std::vector<Overlap>& overlaps)
        : m_directions(directions), m_blocks(blocks), m_overlaps(overlaps)
    {
    }

    /// `depth`: devices from the nearer end to the turn; `at`: this device's index among them, from 0 at the end;
    /// `microbatches`: of each direction.
    void run(int depth, int at, int microbatches)
    {
        const int behind = depth - at - 1;
        for (int i = 0; i < 2 * behind; ++i)
            forward(0);
        for (int i = 0; i <= at; ++i) {
            forward(0);
            forward(1);
        }
        for (int i = 0; i < behind; ++i) {
            backward(1, true);
            weights();
            forward(1);
        }
        for (int i = 0; i < microbatches - 2 * depth + at + 1; ++i) {
            // At the turn the first pair would wait for itself; one after the other is shorter.
            if (i == 0 && behind == 0) {
                forward(0);
                backward(1, false);
            } else {
                together(0, 1);
            }
            together(1, 0);
        }
        for (int i = 0; i < behind; ++i) {
            backward(1, false);
            together(1, 0);
        }
        bool split = false;
        for (int i = 0; i <= at; ++i) {
            const bool middle = i == (at + 1) / 2;
            split = split || (middle && at % 2 == 1);
            backward(1, split);
            split = split || middle;
            backward(0, split);
        }
        for (int i = 0; i < behind; ++i) {
            weights();
            backward(0, true);
        }
        while (!m_owed.empty())
            weights();
    }

private:
    Block block(Op op, int direction, int count) const
    {
        const Direction& d = m_directions[direction];
        return {op, d.stage, d.firstMicrobatch + count, d.replica};
    }
    void forward(int direction) { m_blocks.push_back(block(Op::F, direction, m_forwards[direction]++)); }
    void backward(int direction, bool split)
    {
        m_blocks.push_back(block(split ? Op::I : Op::B, direction, m_backwards[direction]++));
        if (split) {
            m_owed.push_back(m_blocks.back());
            m_owed.back().op = Op::W;
        }
    }
    void weights()
    {
        m_blocks.push_back(m_owed.front());
        m_owed.pop_front();
    }
    void together(int forwards, int backwards)
    {
        forward(forwards);
        backward(backwards, false);
        m_overlaps.push_back({m_blocks[m_blocks.size() - 2], m_blocks.back()});
    }

    std::array<Direction, 2> m_directions;
    std::vector<Block>& m_blocks;
    std::vector<Overlap>& m_overlaps;
    std::array<int, 2> m_forwards{}, m_backwards{};
    std::deque<Block> m_owed; ///< W halves, oldest first
};

Diagnostics checkDualPipe(const FamilyParameters& p)
{
    Diagnostics diagnostics = checkTwoWays(p);
    if (diagnostics.empty() && p.microbatches < 2 * p.devices)
        diagnostics.push_back(
            {Severity::Error, "--microbatches",
             fmt::format("{} microbatches on {} devices do not fill both directions", p.microbatches, p.devices),
             fmt::format("use an even number from {} on", 2 * p.devices)});
    return diagnostics;
}

Schedule makeDualPipe(const FamilyParameters& p)
{
    Schedule schedule;
    schedule.deviceOfStage = linearPlacement(p.devices);
    schedule.replicaPlacements = {reversed(schedule.deviceOfStage)};
    schedule.order.resize(p.devices);
    const int half = p.microbatches / 2;
    for (int device = 0; device < p.devices; ++device) {
        const DualLane::Direction down{device, 0, 0}, up{p.devices - 1 - device, half, 1};
        const bool nearEnd = device < p.devices / 2;
        DualLane lane({nearEnd ? down : up, nearEnd ? up : down}, schedule.order[device], schedule.overlaps);
        lane.run(p.devices / 2, std::min(device, p.devices - 1 - device), half);
    }
    schedule.firstStageMaySplit = true;
    std::sort(schedule.overlaps.begin(), schedule.overlaps.end());
    return schedule;
}

Diagnostics checkDualPipeV(const FamilyParameters& p)
{
    if (p.microbatches >= 2 * p.devices)
        return {};
    return {{Severity::Error, "--microbatches",
             fmt::format("{} microbatches for {} stages", p.microbatches, 2 * p.devices),
             fmt::format("use at least as many as stages, {}", 2 * p.devices)}};
}

Schedule makeDualPipeV(const FamilyParameters& p)
{
    Schedule schedule;
    schedule.deviceOfStage = linearPlacement(p.devices);
    for (int device = p.devices; device-- > 0;)
        schedule.deviceOfStage.push_back(device);
    schedule.order.resize(p.devices);
    for (int device = 0; device < p.devices; ++device) {
        DualLane lane({{{device, 0, 0}, {2 * p.devices - 1 - device, 0, 0}}}, schedule.order[device],
                      schedule.overlaps);
        lane.run(p.devices, device, p.microbatches);
    }
    schedule.firstStageMaySplit = true;
    std::sort(schedule.overlaps.begin(), schedule.overlaps.end());
    return schedule;
}

} // namespace

Family dualPipe()
{
    return {.name = "dualpipe",
            .title = "DualPipe",
            .description = "Two copies in opposite directions whose forwards and backwards overlap.",
            .backward = BackwardStyle::Full,
            .check = checkDualPipe,
            .make = makeDualPipe};
}

Family dualPipeV()
{
    return {.name = "dualpipe-v",
            .title = "DualPipeV",
            .description = "DualPipe folded into a V: one copy on half the devices, forwards and backwards overlapped.",
            .defaultChunks = 2,
            .backward = BackwardStyle::Full,
            .check = checkDualPipeV,
            .make = makeDualPipeV};
}

} // namespace pipewright
