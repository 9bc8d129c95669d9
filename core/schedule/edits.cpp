// SPDX-License-Identifier: GPL-3.0-or-later
// Each edit copies the order, changes the copy and validates it: O(blocks). Where a block may stand at the earliest
// follows from a run of the order in which every block takes one unit (firstLegalIndex).
#include "core/schedule/edits.h"

#include "core/schedule/blockinputs.h"
#include "core/schedule/weightinputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace pipewright {

namespace {

/// The errors of the placed blocks; missing blocks are not reported.
Diagnostics checkPlaced(const Schedule& schedule, std::span<const SkipConnection> skips)
{
    Diagnostics diagnostics;
    OrderGraph graph(schedule, skips, true, diagnostics);
    if (!hasErrors(diagnostics)) {
        const WeightPlan weights = planWeights(schedule, graph, true, diagnostics);
        if (hasErrors(diagnostics))
            return diagnostics;
        addWeightInputs(graph, weights, schedule);
        const Diagnostics stuck = runOrder(graph).stuck;
        diagnostics.insert(diagnostics.end(), stuck.begin(), stuck.end());
    }
    return diagnostics;
}

EditResult refuse(const Schedule& schedule, std::string where, std::string what, std::string hint)
{
    return {schedule, {{Severity::Error, std::move(where), std::move(what), std::move(hint)}}};
}

EditResult checked(Schedule edited, std::span<const SkipConnection> skips)
{
    edited.family = "custom";
    dropBrokenOverlaps(edited);
    Diagnostics diagnostics = checkPlaced(edited, skips);
    return {std::move(edited), std::move(diagnostics)};
}

std::vector<Block>& lane(Schedule& schedule, int device)
{
    return schedule.order[device];
}

/// Joins halves of the first stage that were separated when its blocks were merged into another device's order.
std::vector<Block> withFirstStageJoined(const std::vector<Block>& blocks, int microbatches)
{
    std::vector<std::uint8_t> halves(static_cast<std::size_t>(microbatches), 0);
    const auto isHalf = [](const Block& b) { return b.stage == 0 && isHalfBackward(b.op); };
    for (const Block& block : blocks)
        if (isHalf(block))
            ++halves[block.microbatch];
    std::vector<Block> joined;
    joined.reserve(blocks.size());
    for (const Block& block : blocks) {
        const bool both = isHalf(block) && halves[block.microbatch] == 2;
        if (both && block.op == Op::W)
            continue; // placed with its I
        joined.push_back(block);
        if (both)
            joined.push_back({Op::W, 0, block.microbatch, block.replica});
    }
    return joined;
}

} // namespace

Position find(const Schedule& schedule, const Block& block)
{
    for (std::size_t device = 0; device < schedule.order.size(); ++device) {
        const auto& blocks = schedule.order[device];
        if (const auto found = std::find(blocks.begin(), blocks.end(), block); found != blocks.end())
            return {static_cast<int>(device), static_cast<int>(found - blocks.begin())};
    }
    return {};
}

EditResult moveBlock(const Schedule& schedule, const Block& block, int index, std::span<const SkipConnection> skips)
{
    const Position from = find(schedule, block);
    if (from.device < 0)
        return refuse(schedule, toString(block), "this block is not placed", "drag it from the tray");
    const std::uint32_t moved[] = {static_cast<std::uint32_t>(from.index)};
    const int places = (index > from.index ? index - 1 : index) - from.index;
    return reorderDevice(schedule, from.device, shiftedPositions(schedule.order[from.device].size(), moved, places),
                         skips);
}

std::vector<std::uint32_t> presentPositions(std::size_t size)
{
    std::vector<std::uint32_t> positions(size);
    std::iota(positions.begin(), positions.end(), 0u);
    return positions;
}

std::vector<std::uint32_t> shiftedPositions(std::size_t size, std::span<const std::uint32_t> moved, int places)
{
    // Blocks between two moved ones are passed as well.
    std::vector<std::pair<int, std::uint32_t>> wanted; // how many staying blocks come before it
    std::vector<std::uint32_t> staying;
    const int most = static_cast<int>(size - moved.size());
    staying.reserve(static_cast<std::size_t>(most));
    auto next = moved.begin();
    for (std::uint32_t i = 0; i < size; ++i) {
        if (next != moved.end() && *next == i) {
            wanted.emplace_back(std::clamp(static_cast<int>(staying.size()) + places, 0, most), i);
            ++next;
        } else {
            staying.push_back(i);
        }
    }
    std::vector<std::uint32_t> result;
    result.reserve(size);
    auto mover = wanted.begin();
    for (int i = 0; i <= most; ++i) {
        for (; mover != wanted.end() && mover->first <= i; ++mover)
            result.push_back(mover->second);
        if (i < most)
            result.push_back(staying[i]);
    }
    return result;
}

EditResult reorderDevice(const Schedule& schedule, int device, std::span<const std::uint32_t> positions,
                         std::span<const SkipConnection> skips)
{
    const auto fault = [&] {
        return refuse(schedule, fmt::format("device {}", device), "this is no order of its blocks",
                      "name each position once");
    };
    if (device < 0 || device >= schedule.devices() || positions.size() != schedule.order[device].size())
        return fault();
    const std::vector<Block>& present = schedule.order[device];
    std::vector<char> named(positions.size(), 0);
    std::vector<Block> order;
    order.reserve(positions.size());
    for (const std::uint32_t position : positions) {
        if (position >= named.size() || std::exchange(named[position], char{1}))
            return fault();
        order.push_back(present[position]);
    }
    if (order == present)
        return {schedule, {}};
    Schedule edited = schedule;
    lane(edited, device) = std::move(order);
    return checked(std::move(edited), skips);
}

EditResult moveStage(const Schedule& schedule, int stage, int device,
                     const std::function<Nanoseconds(const Block&)>& startOf, std::span<const SkipConnection> skips,
                     int replica)
{
    if (stage < 0 || stage >= schedule.stages() || device < 0 || device >= schedule.devices() || replica < 0
        || replica >= schedule.replicas())
        return refuse(schedule, fmt::format("stage {}", stage), fmt::format("it cannot move to device {}", device),
                      "choose a stage and a device of this schedule");
    const int from = schedule.placement(replica)[stage];
    if (from == device)
        return {schedule, {}};
    Schedule edited = schedule;
    std::vector<int>& placement = replica == 0 ? edited.deviceOfStage : edited.replicaPlacements[replica - 1];
    placement[stage] = device;
    std::vector<Block>& old = lane(edited, from);
    const auto moved = std::stable_partition(old.begin(), old.end(),
                                             [&](const Block& b) { return b.stage != stage || b.replica != replica; });
    const std::vector<Block> travellers(moved, old.end());
    old.erase(moved, old.end());
    std::vector<Block>& blocks = lane(edited, device);
    std::vector<Block> merged;
    merged.reserve(blocks.size() + travellers.size());
    std::merge(blocks.begin(), blocks.end(), travellers.begin(), travellers.end(), std::back_inserter(merged),
               [&](const Block& a, const Block& b) {
                   const Nanoseconds startA = startOf(a), startB = startOf(b);
                   return startA != startB ? startA < startB : passRank(a.op) < passRank(b.op);
               });
    blocks = schedule.firstStageMaySplit ? std::move(merged) : withFirstStageJoined(merged, schedule.microbatches);
    return checked(std::move(edited), skips);
}

EditResult placeBlock(const Schedule& schedule, const Block& block, int index, std::span<const SkipConnection> skips)
{
    if (block.stage < 0 || block.stage >= schedule.stages())
        return refuse(schedule, toString(block), fmt::format("unknown stage {}", block.stage),
                      "choose a stage of this schedule");
    Schedule edited = schedule;
    if (block.replica < 0 || block.replica >= schedule.replicas())
        return refuse(schedule, toString(block), fmt::format("unknown replica {}", block.replica),
                      "choose a replica of this schedule");
    std::vector<Block>& blocks = lane(edited, schedule.deviceOf(block));
    blocks.insert(blocks.begin() + std::clamp(index, 0, static_cast<int>(blocks.size())), block);
    return checked(std::move(edited), skips);
}

EditResult unplaceBlocks(const Schedule& schedule, std::span<const Block> blocks)
{
    std::vector<Block> taken(blocks.begin(), blocks.end());
    std::sort(taken.begin(), taken.end());
    Schedule edited = schedule;
    edited.family = "custom";
    std::vector<Block> found;
    for (std::vector<Block>& lane_ : edited.order)
        std::erase_if(lane_, [&](const Block& block) {
            const bool goes = std::binary_search(taken.begin(), taken.end(), block);
            if (goes)
                found.push_back(block);
            return goes;
        });
    std::sort(found.begin(), found.end());
    for (const Block& block : blocks)
        if (!std::binary_search(found.begin(), found.end(), block))
            return refuse(schedule, toString(block), "this block is not placed", "select a placed block");
    std::erase_if(edited.pins,
                  [&](const Pin& pin) { return std::binary_search(taken.begin(), taken.end(), pin.block); });
    dropBrokenOverlaps(edited);
    return {std::move(edited), {}};
}

int firstLegalIndex(const Schedule& schedule, const Block& block, Diagnostics* why)
{
    const auto refuseBecause = [&](Diagnostics reasons) {
        if (why != nullptr)
            *why = std::move(reasons);
        return -1;
    };
    Diagnostics diagnostics;
    const OrderGraph graph(schedule, {}, true, diagnostics);
    if (hasErrors(diagnostics))
        return refuseBecause(std::move(diagnostics));
    if (block.stage < 0 || block.stage >= schedule.stages() || block.microbatch < 0
        || block.microbatch >= schedule.microbatches)
        return -1;

    std::vector<BlockIndex> inputs;
    forEachInput(
        schedule, {}, block,
        [&](Op op, int stage, int microbatch) { return graph.indexOf(op, stage, microbatch) != noBlock; },
        [&](Op op, int stage, int microbatch) { inputs.push_back(graph.indexOf(op, stage, microbatch)); });
    if (std::find(inputs.begin(), inputs.end(), noBlock) != inputs.end())
        return refuseBecause(
            {{Severity::Error, toString(block), "what it needs is not placed yet", "place its inputs first"}});

    // With every block taking one unit, every dependency of an input starts before that input ends. So the inputs
    // cannot depend on the first block here that starts later.
    const OrderRun run = runOrder(
        graph, {}, [](BlockIndex) { return Nanoseconds{1}; }, [](BlockIndex, BlockIndex) { return Nanoseconds{0}; });
    if (!run.stuck.empty())
        return refuseBecause(run.stuck);
    Nanoseconds ready = 0;
    for (const BlockIndex input : inputs)
        ready = std::max(ready, run.start[input] + 1);
    const auto device = static_cast<std::size_t>(schedule.deviceOf(block));
    BlockIndex i = graph.firstOfDevice[device];
    while (i < graph.firstOfDevice[device + 1] && run.start[i] < ready)
        ++i;
    const int earliest = static_cast<int>(i - graph.firstOfDevice[device]);
    // The block goes after the same pass of earlier microbatches, unless a placed block needs it earlier.
    int position = earliest;
    const std::vector<Block>& order = schedule.order[device];
    for (int k = earliest; k < static_cast<int>(order.size()); ++k) {
        const Block& other = order[k];
        if (other.op == block.op && other.stage == block.stage && other.replica == block.replica
            && other.microbatch < block.microbatch)
            position = k + 1;
    }
    if (position != earliest && placeBlock(schedule, block, position).legal())
        return position;
    EditResult result = placeBlock(schedule, block, earliest);
    return result.legal() ? earliest : refuseBecause(std::move(result.diagnostics));
}

EditResult splitBackwards(const Schedule& schedule, std::span<const Block> blocks,
                          std::span<const SkipConnection> skips)
{
    const std::set<Block> wanted(blocks.begin(), blocks.end());
    Schedule edited = schedule;
    bool found = false;
    for (std::vector<Block>& order : edited.order) {
        std::vector<Block> halves;
        halves.reserve(order.size() + wanted.size());
        for (const Block& block : order) {
            if (!isFullBackward(block.op) || !wanted.contains(block)) {
                halves.push_back(block);
                continue;
            }
            for (const Op op : halvesOfBackward)
                halves.push_back({op, block.stage, block.microbatch, block.replica});
            found = true;
        }
        order = std::move(halves);
    }
    if (!found)
        return refuse(schedule, wanted.empty() ? "" : toString(*wanted.begin()),
                      "no full backward is among the chosen blocks", "choose a block B, which holds both halves");
    for (Pin& pin : edited.pins)
        if (isFullBackward(pin.block.op) && wanted.contains(pin.block))
            pin.block.op = Op::I;
    return checked(std::move(edited), skips);
}

EditResult mergeBackwards(const Schedule& schedule, std::span<const Block> blocks,
                          std::span<const SkipConnection> skips)
{
    // By the input gradient's name, how many of its two halves are placed.
    std::map<Block, int> halves;
    const auto nameOf = [](Block block) {
        block.op = Op::I;
        return block;
    };
    for (const Block& block : blocks)
        if (isHalfBackward(block.op))
            halves.emplace(nameOf(block), 0);
    const auto countedIn = [&](const Block& block) {
        return isHalfBackward(block.op) ? halves.find(nameOf(block)) : halves.end();
    };
    for (const std::vector<Block>& order : schedule.order)
        for (const Block& block : order)
            if (const auto half = countedIn(block); half != halves.end())
                ++half->second;
    std::erase_if(halves, [](const auto& half) { return half.second != 2; });
    if (halves.empty())
        return refuse(schedule, blocks.empty() ? "" : toString(blocks.front()),
                      "no backward with both its halves placed is among the chosen blocks",
                      "choose a block I or W whose other half has a place, too");
    Schedule edited = schedule;
    for (std::vector<Block>& order : edited.order) {
        std::erase_if(order, [&](const Block& block) { return block.op == Op::W && countedIn(block) != halves.end(); });
        for (Block& block : order)
            if (countedIn(block) != halves.end())
                block.op = Op::B;
    }
    std::erase_if(edited.pins,
                  [&](const Pin& pin) { return pin.block.op == Op::W && countedIn(pin.block) != halves.end(); });
    for (Pin& pin : edited.pins)
        if (countedIn(pin.block) != halves.end())
            pin.block.op = Op::B;
    return checked(std::move(edited), skips);
}

EditResult pinBlock(const Schedule& schedule, const Block& block, Nanoseconds earliestStart)
{
    if (find(schedule, block).device < 0)
        return refuse(schedule, toString(block), "this block is not placed", "place it before pinning it");
    if (earliestStart < 0)
        return refuse(schedule, toString(block), "the earliest start is negative", "use a time from 0 on");
    Schedule edited = schedule;
    std::erase_if(edited.pins, [&](const Pin& pin) { return pin.block == block; });
    if (earliestStart > 0)
        edited.pins.push_back({block, earliestStart});
    return {std::move(edited), {}};
}

} // namespace pipewright
