// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

namespace pipewright {

namespace {

/// The largest power of two that is no more than this.
int mostDoubling(int replicas)
{
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(1, replicas))));
}

/// The place of a replica's share: by its number with the bits reversed, so that the shares which a round keeps
/// together are adjacent. The share of a replica beyond the power of two follows that of the replica to which it sends
/// its sum.
int placeOfShare(int replica, int replicas)
{
    const int doubling = mostDoubling(replicas);
    const auto key = [doubling](int of) {
        int reversed = 0;
        for (int bit = 1; bit < doubling; bit *= 2)
            reversed = 2 * reversed + ((of & bit) != 0 ? 1 : 0);
        return 2 * reversed + (of >= doubling ? 1 : 0);
    };
    int place = 0;
    for (int other = 0; other < replicas; ++other)
        place += key(other) < key(replica) ? 1 : 0;
    return place;
}

} // namespace

Schedule withReplicas(const Schedule& one, int copies)
{
    Schedule result = one;
    result.microbatches = one.microbatches * copies;
    for (int copy = 1; copy < copies; ++copy) {
        const auto ofCopy = [&](Block block) {
            block.microbatch += copy * one.microbatches;
            block.replica += copy * one.replicas();
            return block;
        };
        for (int replica = 0; replica < one.replicas(); ++replica) {
            std::vector<int>& placement = result.replicaPlacements.emplace_back(one.placement(replica));
            for (int& device : placement)
                device += copy * one.devices();
        }
        for (const std::vector<Block>& lane : one.order)
            std::transform(lane.begin(), lane.end(), std::back_inserter(result.order.emplace_back()), ofCopy);
        for (const Overlap& pair : one.overlaps)
            result.overlaps.push_back({ofCopy(pair.first), ofCopy(pair.second)});
        for (const Pin& pin : one.pins)
            result.pins.push_back({ofCopy(pin.block), pin.earliestStart});
    }
    std::sort(result.overlaps.begin(), result.overlaps.end());
    return result;
}

int pipelinesOf(const PipelineShape& shape)
{
    std::vector<std::set<int>> pipelines; // the devices of each
    for (int replica = 0; replica < shape.replicas(); ++replica) {
        std::set<int> devices(shape.placement(replica).begin(), shape.placement(replica).end());
        std::erase_if(pipelines, [&](std::set<int>& known) {
            const bool shares =
                std::any_of(known.begin(), known.end(), [&](int device) { return devices.contains(device); });
            if (shares)
                devices.merge(known);
            return shares;
        });
        pipelines.push_back(std::move(devices));
    }
    return static_cast<int>(pipelines.size());
}

std::vector<ReplicaPair> replicaPairs(int replicas)
{
    const int doubling = mostDoubling(replicas);
    std::vector<ReplicaPair> pairs;
    for (int other = doubling; other < replicas; ++other)
        pairs.push_back({other - doubling, other, 0});
    for (int step = 1, round = doubling < replicas ? 1 : 0; step < doubling; step *= 2, ++round)
        for (int root = 0; root < doubling; ++root)
            if ((root & step) == 0)
                pairs.push_back({root, root + step, round});
    return pairs;
}

std::vector<ReplicaCopy> replicaCopies(int replicas)
{
    const int doubling = mostDoubling(replicas);
    std::vector<ReplicaCopy> copies;
    for (int to = doubling; to < replicas; ++to)
        copies.push_back({to - doubling, to});
    return copies;
}

ReplicaShare shareOfReplica(std::int64_t count, int replica, int replicas)
{
    const auto upTo = [&](int place) { return count / replicas * place + count % replicas * place / replicas; };
    const int place = placeOfShare(replica, replicas);
    return {upTo(place), upTo(place + 1)};
}

ReplicaShare updatedBy(const PipelineShape& shape, std::int64_t count, int replica)
{
    return shape.sharesOptimizer() ? shareOfReplica(count, replica, shape.replicas()) : ReplicaShare{0, count};
}

ReplicaShare keptBehind(std::int64_t count, const ReplicaPair& pair, int replica, int replicas)
{
    if (pair.other >= mostDoubling(replicas))
        return {0, replica == pair.root ? count : 0};
    const int known = 2 * (pair.other - pair.root) - 1; // the bits of the completed rounds
    ReplicaShare kept{count, 0};
    for (int other = 0; other < replicas; ++other)
        if (((other ^ replica) & known) == 0) {
            const ReplicaShare share = shareOfReplica(count, other, replicas);
            kept = {std::min(kept.begin, share.begin), std::max(kept.end, share.end)};
        }
    return kept;
}

int rootOfPair(const PipelineShape& shape, int stage, int device, int other)
{
    if (const int doubling = mostDoubling(shape.replicas()); other >= doubling)
        return other - doubling;
    for (int step = 1; step <= other; step *= 2)
        if ((other & step) != 0 && shape.placement(other - step)[static_cast<std::size_t>(stage)] == device)
            return other - step;
    return 0;
}

Diagnostics checkReplicas(const PipelineShape& shape)
{
    Diagnostics diagnostics;
    const auto bad = [&](std::string what, std::string hint) {
        diagnostics.push_back({Severity::Error, "schedule.replica_placements", std::move(what), std::move(hint)});
    };
    if (shape.sharesOptimizer())
        for (int stage = 0; stage < shape.stages(); ++stage) {
            std::set<int> devices;
            for (int replica = 0; replica < shape.replicas(); ++replica)
                if (!devices.insert(shape.placement(replica)[static_cast<std::size_t>(stage)]).second) {
                    diagnostics.push_back(
                        {Severity::Error, "schedule.zero",
                         fmt::format("two replicas have stage {} on one device, which would keep two shares", stage),
                         "place them on different devices, or leave \"zero\" out"});
                    return diagnostics;
                }
        }
    for (std::size_t stage = 0; shape.replicas() > 2 && stage < shape.deviceOfStage.size(); ++stage) {
        std::vector<std::pair<int, int>> holders; // device and replica
        for (int replica = 0; replica < shape.replicas(); ++replica)
            holders.emplace_back(shape.placement(replica)[stage], replica);
        std::sort(holders.begin(), holders.end());
        for (std::size_t i = 0; i + 1 < holders.size(); ++i)
            if (holders[i].first == holders[i + 1].first && (holders[i].second ^ 1) != holders[i + 1].second) {
                bad(fmt::format("stage {} of replicas {} and {} is on device {}", stage, holders[i].second,
                                holders[i + 1].second, holders[i].first),
                    "give every copy of the pipeline devices of its own; the two of a bidirectional one have "
                    "neighbouring numbers, such as 0 and 1");
                return diagnostics;
            }
    }
    return diagnostics;
}

} // namespace pipewright
