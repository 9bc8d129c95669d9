// SPDX-License-Identifier: GPL-3.0-or-later
// Shifts the dependent blocks of a microbatch together with one that is moved. If the result cannot run, the shift of
// the others is shortened place by place until it can. O(places x blocks).
#include "core/schedule/ripple.h"

#include "core/schedule/ordergraph.h"
#include "core/schedule/validate.h"
#include "core/schedule/weightplan.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace pipewright {

namespace {

/// Whether `other`, of the same microbatch, depends on `block`, directly or indirectly.
bool comesAfter(const Block& other, const Block& block)
{
    if (other == block)
        return false;
    if (runsForward(other.op))
        return makesActivation(block.op) && other.stage >= block.stage + int{makesActivation(other.op)};
    if (makesActivation(block.op))
        return true; // every forward is behind all backwards
    if (block.op == Op::W)
        return false;
    if (isRecompute(block.op))
        return other.stage <= block.stage;
    return other.op == Op::W ? other.stage <= block.stage : other.stage < block.stage;
}

/// The lane with each of `moved` (ascending positions) moved past `places` of the other blocks, as far as possible.
std::vector<Block> shifted(const std::vector<Block>& lane, const std::vector<std::uint32_t>& moved, int places)
{
    std::vector<Block> result;
    result.reserve(lane.size());
    for (const std::uint32_t position : shiftedPositions(lane.size(), moved, places))
        result.push_back(lane[position]);
    return result;
}

Diagnostics faultsOf(const Schedule& schedule, std::span<const SkipConnection> skips)
{
    Diagnostics diagnostics;
    const OrderGraph graph(schedule, skips, true, diagnostics);
    return hasErrors(diagnostics) ? diagnostics : runOrder(graph).stuck;
}

} // namespace

EditResult rippleBlock(const Schedule& schedule, const Block& block, int places, std::span<const SkipConnection> skips)
{
    const Position at = find(schedule, block);
    if (at.device < 0)
        return {schedule,
                {{Severity::Error, toString(block), "this block is not placed", "place it before moving it"}}};
    if (places == 0)
        return {schedule, {}};
    Diagnostics faults;
    const int step = places < 0 ? 1 : -1;
    for (int others = places;; others += step) {
        Schedule edited = schedule;
        for (std::size_t d = 0; d < schedule.order.size(); ++d) {
            const std::vector<Block>& lane = schedule.order[d];
            std::vector<std::uint32_t> alone, following;
            for (std::uint32_t i = 0; i < lane.size(); ++i) {
                if (lane[i] == block)
                    alone.push_back(i);
                else if (lane[i].microbatch == block.microbatch && lane[i].replica == block.replica
                         && comesAfter(lane[i], block))
                    following.push_back(i);
            }
            std::vector<Block>& result = edited.order[d];
            if (!alone.empty() && others == places) {
                following.push_back(alone.front());
                std::sort(following.begin(), following.end());
            } else if (!alone.empty()) {
                result = shifted(result, alone, places);
                for (std::uint32_t& i : following)
                    i = static_cast<std::uint32_t>(std::find(result.begin(), result.end(), lane[i]) - result.begin());
                std::sort(following.begin(), following.end());
            }
            if (!following.empty())
                result = shifted(result, following, others);
        }
        if (edited.order == schedule.order)
            return {schedule, {}};
        edited.family = "custom";
        dropBrokenOverlaps(edited);
        Diagnostics wrong = faultsOf(edited, skips);
        // The weight rules can only be checked for a complete schedule.
        if (!hasErrors(wrong) && hasUpdates(edited) && unplacedBlocks(edited).empty())
            wrong = validate(edited, skips);
        if (!hasErrors(wrong))
            return {std::move(edited), {}};
        faults = wrong; // the last attempt moves the block alone: its errors are the reason
        if (others == 0)
            return {schedule, faults};
    }
}

} // namespace pipewright
