// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/recomputeblocks.h"

#include <algorithm>

namespace pipewright {

bool mayRecompute(const Schedule& schedule)
{
    return !schedule.shardedStates;
}

Schedule withMissingRecomputes(Schedule schedule)
{
    const auto microbatches = static_cast<std::size_t>(std::max(0, schedule.microbatches));
    std::vector<bool> placed(static_cast<std::size_t>(schedule.stages()) * microbatches);
    const auto cell = [&](const Block& block) {
        return static_cast<std::size_t>(block.stage) * microbatches + static_cast<std::size_t>(block.microbatch);
    };
    const auto isKnown = [&](const Block& block) {
        return block.stage >= 0 && block.stage < schedule.stages() && block.microbatch >= 0
               && block.microbatch < schedule.microbatches;
    };
    for (const std::vector<Block>& lane : schedule.order)
        for (const Block& block : lane)
            if (block.op == Op::R && isKnown(block))
                placed[cell(block)] = true;
    for (std::vector<Block>& lane : schedule.order) {
        std::vector<Block> result;
        result.reserve(lane.size());
        const auto recomputeFor = [&](const Block& block) {
            if (makesInputGrad(block.op) && isKnown(block) && schedule.recomputeOf(block.stage).byBlock()
                && !placed[cell(block)])
                result.push_back({Op::R, block.stage, block.microbatch, block.replica});
        };
        for (std::size_t i = 0; i < lane.size(); ++i) {
            const bool pair = i + 1 < lane.size()
                              && std::binary_search(schedule.overlaps.begin(), schedule.overlaps.end(),
                                                    Overlap{lane[i], lane[i + 1]});
            recomputeFor(lane[i]);
            if (pair)
                recomputeFor(lane[i + 1]);
            result.push_back(lane[i]);
            if (pair)
                result.push_back(lane[++i]);
        }
        lane = std::move(result);
    }
    return schedule;
}

Schedule withRecompute(const Schedule& schedule, std::vector<Recompute> ofStage)
{
    Schedule result = schedule;
    if (std::all_of(ofStage.begin(), ofStage.end(), [](Recompute r) { return r == Recompute::None; }))
        ofStage.clear();
    result.recompute = std::move(ofStage);
    const auto goes = [&](const Block& block) {
        return block.op == Op::R && !result.recomputeOf(block.stage).byBlock();
    };
    for (std::vector<Block>& lane : result.order)
        std::erase_if(lane, goes);
    std::erase_if(result.pins, [&](const Pin& pin) { return goes(pin.block); });
    dropBrokenOverlaps(result);
    return result.recompute.empty() ? result : withMissingRecomputes(std::move(result));
}

} // namespace pipewright
