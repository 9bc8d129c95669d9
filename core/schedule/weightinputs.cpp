// SPDX-License-Identifier: GPL-3.0-or-later
// Derives both kinds of dependency from the weight plan. Gradient sums: within the microbatches of one update, a chain
// from worker to worker (Cyclic Data Parallelism, arXiv 2403.08837), or one edge per worker to the update. Weights: the
// first block of each device that reads a version depends on the update that made it. O(blocks log blocks).
#include "core/schedule/weightinputs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace pipewright {

namespace {

/// The block that completes a microbatch's gradient. With data parallel workers all backwards are full.
BlockIndex gradientOf(const OrderGraph& graph, int stage, int microbatch)
{
    return graph.indexOf(Op::B, stage, microbatch);
}

bool chainsGradients(const Schedule& schedule)
{
    return schedule.weightPolicy.rule != WeightRule::Synchronous;
}

} // namespace

std::vector<PartialSum> partialSums(const OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule)
{
    std::vector<PartialSum> sums;
    if (schedule.dataParallelDevices.empty())
        return sums;
    const auto leaves = [&](BlockIndex from, BlockIndex to) {
        return schedule.shardedStates || graph.deviceOfBlock[from] != graph.deviceOfBlock[to];
    };
    for (std::size_t stage = 0; stage < plan.updates.size(); ++stage)
        for (std::size_t update = 0; update < plan.updates[stage].size(); ++update) {
            const BlockIndex u = plan.updates[stage][update];
            BlockIndex previous = noBlock;
            std::map<int, BlockIndex> lastOfDevice;
            for (const std::int32_t m : plan.batches[stage][update]) {
                const BlockIndex block = gradientOf(graph, static_cast<int>(stage), m);
                if (block == noBlock)
                    continue;
                if (chainsGradients(schedule) && previous != noBlock && leaves(previous, block))
                    sums.push_back({previous, block});
                previous = block;
                lastOfDevice[graph.deviceOfBlock[block]] = block;
            }
            if (chainsGradients(schedule)) {
                if (previous != noBlock && leaves(previous, u))
                    sums.push_back({previous, u});
                continue;
            }
            std::vector<BlockIndex> others;
            for (const auto& [device, block] : lastOfDevice)
                if (device != graph.deviceOfBlock[u])
                    others.push_back(block);
            std::sort(others.begin(), others.end(), [&](BlockIndex a, BlockIndex b) {
                return graph.blocks[a].microbatch < graph.blocks[b].microbatch;
            });
            for (const BlockIndex block : others)
                sums.push_back({block, u});
        }
    return sums;
}

void addWeightInputs(OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule)
{
    if (schedule.dataParallelDevices.empty() || !plan.versioned())
        return;
    for (const PartialSum& sum : partialSums(graph, plan, schedule))
        graph.skipInputs.push_back({sum.to, sum.from, 0, OrderGraph::SkipInput::Kind::PartialGradient});
    if (schedule.shardedStates)
        WeightHops(graph, plan, schedule).eachHop(plan, [&graph](BlockIndex reader, BlockIndex from) {
            graph.skipInputs.push_back({reader, from, 0, OrderGraph::SkipInput::Kind::UpdatedWeights});
        });
    std::set<std::tuple<int, int, int>> seen; // stage, version, device
    for (BlockIndex i = 0; i < graph.blocks.size() && !schedule.shardedStates; ++i) {
        const Block& block = graph.blocks[i];
        const int version = plan.reads[i].version;
        if (!usesWeights(block.op) || version == 0)
            continue;
        const auto& updates = plan.updates[block.stage];
        if (static_cast<std::size_t>(version) > updates.size())
            continue; // only while blocks are missing
        const BlockIndex update = updates[version - 1];
        if (seen.insert({block.stage, version, graph.deviceOfBlock[i]}).second)
            graph.skipInputs.push_back({i, update, 0, OrderGraph::SkipInput::Kind::UpdatedWeights});
    }
    std::stable_sort(graph.skipInputs.begin(), graph.skipInputs.end(),
                     [](const auto& a, const auto& b) { return a.block < b.block; });
}

} // namespace pipewright
