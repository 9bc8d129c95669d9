// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/schedule.h"

#include <algorithm>

namespace pipewright {

Schedule::Schedule() = default;
Schedule::Schedule(const Schedule& other) = default;
Schedule::Schedule(Schedule&& other) noexcept = default;
Schedule& Schedule::operator=(const Schedule& other) = default;
Schedule& Schedule::operator=(Schedule&& other) noexcept = default;
Schedule::~Schedule() = default;
bool Schedule::operator==(const Schedule& other) const = default;

std::int64_t Schedule::blocks() const
{
    std::int64_t count = 0;
    for (const auto& blocksOfDevice : order)
        count += static_cast<std::int64_t>(blocksOfDevice.size());
    return count;
}

std::vector<Block> unplacedBlocks(const Schedule& schedule)
{
    if (schedule.stages() == 0 || schedule.microbatches < 1 || schedule.microbatches > maxMicrobatches)
        return {};
    const auto stages = static_cast<std::size_t>(schedule.stages());
    const auto microbatches = static_cast<std::size_t>(schedule.microbatches);
    std::vector<std::uint8_t> placed(stages * microbatches, 0); // one bit per operation
    const auto bit = [](Op op) { return static_cast<std::uint8_t>(1u << static_cast<unsigned>(op)); };
    for (const auto& blocksOfDevice : schedule.order)
        for (const Block& block : blocksOfDevice)
            if (block.stage >= 0 && block.stage < schedule.stages() && block.microbatch >= 0
                && block.microbatch < schedule.microbatches)
                placed[static_cast<std::size_t>(block.stage) * microbatches
                       + static_cast<std::size_t>(block.microbatch)] |= bit(block.op);

    std::vector<Block> missing;
    for (const Op op : allOps)
        for (std::size_t m = 0; m < microbatches; ++m)
            for (std::size_t s = 0; s < stages; ++s) {
                const std::uint8_t has = placed[s * microbatches + m];
                const bool split = (has & (bit(Op::I) | bit(Op::W))) != 0
                                   || ((has & bit(Op::B)) == 0 && schedule.backward == BackwardStyle::Split);
                if (isNeeded(op, split ? BackwardStyle::Split : BackwardStyle::Full,
                             schedule.recomputeOf(static_cast<int>(s)).byBlock())
                    && !(has & bit(op)))
                    missing.push_back(schedule.block(op, static_cast<int>(s), static_cast<int>(m)));
            }
    return missing;
}

void dropBrokenOverlaps(Schedule& schedule)
{
    if (schedule.overlaps.empty()) {
        schedule.partOrders.clear();
        return;
    }
    std::vector<Overlap> kept;
    for (const auto& blocks : schedule.order)
        for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
            const Overlap pair{blocks[i], blocks[i + 1]};
            if (std::binary_search(schedule.overlaps.begin(), schedule.overlaps.end(), pair))
                kept.push_back(pair);
        }
    std::sort(kept.begin(), kept.end());
    schedule.overlaps = std::move(kept);
    std::erase_if(schedule.partOrders, [&](const PartOrder& order) {
        return !std::binary_search(schedule.overlaps.begin(), schedule.overlaps.end(), order.pair);
    });
}

namespace {

auto placeOf(auto& orders, const Overlap& pair)
{
    return std::lower_bound(orders.begin(), orders.end(), pair,
                            [](const PartOrder& order, const Overlap& sought) { return order.pair < sought; });
}

} // namespace

const PartSequence* statedPartOrder(const Schedule& schedule, const Overlap& pair)
{
    const auto found = placeOf(schedule.partOrders, pair);
    return found != schedule.partOrders.end() && found->pair == pair ? &found->sequence : nullptr;
}

void statePartOrder(Schedule& schedule, const Overlap& pair, PartSequence sequence)
{
    const auto place = placeOf(schedule.partOrders, pair);
    const bool stated = place != schedule.partOrders.end() && place->pair == pair;
    if (sequence.empty() && stated)
        schedule.partOrders.erase(place);
    else if (stated)
        place->sequence = std::move(sequence);
    else if (!sequence.empty())
        schedule.partOrders.insert(place, {pair, std::move(sequence)});
}

} // namespace pipewright
