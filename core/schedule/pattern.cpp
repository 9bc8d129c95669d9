// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pipewright {
namespace {

/// Replica and stage of what a device holds, ascending.
std::vector<std::pair<int, int>> stagesOf(const Schedule& schedule, int device)
{
    std::vector<std::pair<int, int>> held;
    for (int replica = 0; replica < schedule.replicas(); ++replica)
        for (int stage = 0; stage < schedule.stages(); ++stage) {
            const std::vector<int>* parallel =
                schedule.dataParallelDevices.empty() ? nullptr : &schedule.dataParallelDevices[stage];
            if (schedule.placement(replica)[stage] == device
                || (parallel && std::find(parallel->begin(), parallel->end(), device) != parallel->end()))
                held.emplace_back(replica, stage);
        }
    return held;
}

/// Microbatches are divided among the replicas in equal runs (PipelineShape::replicaOf()).
int firstMicrobatch(const Schedule& schedule, int replica)
{
    const std::int64_t replicas = schedule.replicas();
    return static_cast<int>((std::int64_t{replica} * schedule.microbatches + replicas - 1) / replicas);
}

} // namespace

Pattern patternOf(const Schedule& schedule, int device, std::span<const std::uint32_t> positions)
{
    const std::vector<std::pair<int, int>> held = stagesOf(schedule, device);
    Pattern pattern;
    for (std::size_t i = 0; i < positions.size(); ++i) {
        const Block& block = schedule.order[device][positions[i]];
        const auto chunk = std::find(held.begin(), held.end(), std::pair<int, int>(block.replica, block.stage));
        const int between = i == 0 ? 0 : static_cast<int>(positions[i] - positions[i - 1]) - 1;
        pattern.blocks.push_back({block.op, static_cast<int>(chunk - held.begin()),
                                  block.microbatch - firstMicrobatch(schedule, block.replica), between});
    }
    return pattern;
}

bool PatternOnDevice::changesOrder() const
{
    return !std::is_sorted(positions.begin(), positions.end());
}

PatternOnDevice patternOn(const Schedule& schedule, const Pattern& pattern, int device)
{
    const std::vector<Block>& order = schedule.order[device];
    std::vector<std::pair<Block, std::uint32_t>> places;
    for (std::uint32_t i = 0; i < order.size(); ++i)
        places.emplace_back(order[i], i);
    std::sort(places.begin(), places.end());
    const std::vector<std::pair<int, int>> held = stagesOf(schedule, device);

    const auto placeOf = [&](const PatternBlock& each) {
        if (each.chunk >= std::ssize(held))
            return places.end();
        const auto& [replica, stage] = held[each.chunk];
        const Block block{each.op, stage, firstMicrobatch(schedule, replica) + each.microbatch, replica};
        const auto at = std::lower_bound(places.begin(), places.end(), std::pair(block, std::uint32_t{0}));
        return at != places.end() && at->first == block ? at : places.end();
    };

    struct Found {
        std::uint32_t position = 0;
        int between = 0;
    };
    PatternOnDevice result;
    std::vector<Found> found;
    std::vector<char> isFound(order.size(), 0);
    int skipped = 0; // blocks between, of pattern blocks that this device does not have
    for (const PatternBlock& each : pattern.blocks) {
        skipped += each.between;
        const auto at = placeOf(each);
        if (at == places.end()) {
            result.missing.push_back(each);
            continue;
        }
        found.push_back({at->second, found.empty() ? 0 : skipped});
        isFound[at->second] = 1;
        skipped = 0;
    }

    result.positions.reserve(order.size());
    auto next = found.begin();
    int left = 0; // blocks to come before the next one of the pattern
    if (next != found.end())
        left = static_cast<int>(std::count(isFound.begin(), isFound.begin() + next->position, char{0}));
    const auto takeDue = [&](bool all) {
        while (next != found.end() && (all || left == 0)) {
            result.positions.push_back(next->position);
            if (++next != found.end())
                left = next->between;
        }
    };
    for (std::uint32_t i = 0; i < order.size(); ++i) {
        if (isFound[i])
            continue;
        takeDue(false);
        result.positions.push_back(i);
        --left;
    }
    takeDue(true); // fewer blocks behind than where it was copied
    return result;
}

EditResult pastePattern(const Schedule& schedule, const Pattern& pattern, std::span<const int> devices,
                        std::span<const SkipConnection> skips)
{
    std::vector<std::pair<int, std::vector<std::uint32_t>>> orders;
    for (const int device : devices) {
        if (device < 0 || device >= schedule.devices())
            return {schedule,
                    {{Severity::Error, fmt::format("device {}", device), "there is no such device",
                      fmt::format("choose one of the {} devices", schedule.devices())}}};
        PatternOnDevice there = patternOn(schedule, pattern, device);
        if (there.missing.size() == pattern.blocks.size())
            return {schedule,
                    {{Severity::Error, fmt::format("device {}", device),
                      fmt::format("it has none of the {} copied blocks", pattern.blocks.size()),
                      "its stages, microbatches or halves of backwards are others; leave it out"}}};
        if (there.changesOrder())
            orders.emplace_back(device, std::move(there.positions));
    }
    if (orders.empty())
        return {schedule, {}};
    // The last one's edit checks them all.
    Schedule edited = schedule;
    for (std::size_t i = 0; i + 1 < orders.size(); ++i) {
        const auto& [device, positions] = orders[i];
        std::vector<Block>& order = edited.order[device];
        const std::vector<Block> present = order;
        for (std::size_t p = 0; p < order.size(); ++p)
            order[p] = present[positions[p]];
    }
    EditResult result = reorderDevice(edited, orders.back().first, orders.back().second, skips);
    return result.legal() ? std::move(result) : EditResult{schedule, std::move(result.diagnostics)};
}

} // namespace pipewright
