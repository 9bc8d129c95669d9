// SPDX-License-Identifier: GPL-3.0-or-later
// ZB-V (arXiv 2401.10241, section 6): zero bubble within the activation memory of 1F1B, balanced over the
// devices. When all passes take equal time and transfers none, the handcrafted order (PyTorch's
// ZBVZeroBubble) has no bubble to beat; for any other times the heuristic makes the order.
#include "core/families/orders.h"
#include "core/families/zbvheuristic.h"

#include <algorithm>

namespace pipewright {

namespace {

/// One device of the handcrafted order, which needs 2p - 1 microbatches or more: with fewer it is made for 2p - 1, and
/// the surplus ones are left out.
std::vector<Block> handcraftedLane(int device, int devices, int microbatches)
{
    const int full = std::max(2 * devices - 1, microbatches);
    const int down = device, up = 2 * devices - 1 - device;
    std::vector<Block> blocks;
    blocks.reserve(6 * full);
    LaneBuilder first(blocks, down, full), second(blocks, up, full);
    for (int i = 0; i < 2 * (devices - device) - 1; ++i)
        first.next(Op::F);
    for (int i = 0; i < device; ++i) {
        second.next(Op::F);
        first.next(Op::F);
    }
    const auto secondPass = [&] {
        second.next(Op::F);
        second.next(Op::I);
        second.next(Op::W);
    };
    for (int i = 0; i < devices - device; ++i)
        secondPass();
    while (first.left(Op::F) || second.left(Op::F)) {
        first.next(Op::F);
        first.next(Op::I);
        first.next(Op::W);
        secondPass();
    }
    for (int i = 0; i < device; ++i) {
        first.next(Op::I);
        second.next(Op::I);
    }
    for (int i = 0; i < devices - device; ++i) {
        first.next(Op::I);
        first.next(Op::W);
    }
    second.rest(Op::W);
    first.rest(Op::W);
    std::erase_if(blocks, [&](const Block& b) { return b.microbatch >= microbatches; });
    return blocks;
}

bool handcraftedFits(const FamilyParameters& p)
{
    return p.stageTimes.empty() && p.forward == p.inputGrad && p.forward == p.weightGrad && p.transfer == 0
           && p.microbatches >= 2 * p.devices - 1 && p.memoryLimit.value_or(1.0) >= 1.0 && p.memoryBudget.empty()
           && p.stageSaved.empty();
}

Diagnostics checkV(const FamilyParameters& p)
{
    return checkSearchInputs(p, 2, 1);
}

Schedule makeV(const FamilyParameters& p)
{
    Schedule schedule;
    schedule.deviceOfStage = searchPlacement(p.devices, 2);
    schedule.firstStageMaySplit = true;
    if (handcraftedFits(p)) {
        for (int device = 0; device < p.devices; ++device)
            schedule.order.push_back(handcraftedLane(device, p.devices, p.microbatches));
        return schedule;
    }
    const std::vector<StageTimes> times = passTimes(p, 2);
    std::optional<VOrder> made = zeroBubbleVHeuristic(p.devices, p.microbatches, times, p.transfer, SearchMemory(p, 2));
    // The V needs all of 1x: where its two chunks differ, the larger ones may take more bytes than as many
    // microbatches.
    if (!made && p.memoryBudget.empty() && !p.stageSaved.empty())
        made = zeroBubbleVHeuristic(p.devices, p.microbatches, times, p.transfer, countedInChunks(p));
    if (!made)
        throw noScheduleFits(p, "allow more memory, or use v-auto");
    schedule.order = std::move(made->order);
    return schedule;
}

} // namespace

Family zeroBubbleV()
{
    return {.name = "zb-v",
            .title = "ZB-V",
            .description =
                "Two chunks per device in a V: no bubble when passes take equal time, within the memory of 1F1B.",
            .defaultChunks = 2,
            .backward = BackwardStyle::Split,
            .check = checkV,
            .make = makeV,
            .search = FamilySearch::Few};
}

} // namespace pipewright
