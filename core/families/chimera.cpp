// SPDX-License-Identifier: GPL-3.0-or-later
// Chimera (arXiv 2107.06925): two replicas of the model in opposite directions, each with half of the
// microbatches. Replica 0 has stage i on device i, replica 1 on device p-1-i; each runs 1F1B, and a device runs the
// pass that is ready in either of its two pipelines, backwards before forwards. With equal times of F and B every
// device has p-2 idle slots, for every even number of microbatches from p on, and keeps p/2+1 to p activations.
// O(blocks).
#include "core/families/orders.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace pipewright {

namespace {

/// Both pipelines' 1F1B lists run against each other in slots of one F or one B.
class TwoWayRun {
public:
    TwoWayRun(int devices, int microbatches) : m_devices(devices), m_half(microbatches / 2)
    {
        for (int replica = 0; replica < 2; ++replica)
            for (int stage = 0; stage < devices; ++stage) {
                Lane& lane = m_lanes.emplace_back();
                lane.blocks = alternate(stage, m_half, std::min(devices - stage, m_half));
                lane.forwardEnd.assign(m_half, notYet);
                lane.backwardEnd = lane.forwardEnd;
            }
        order.resize(devices);
        for (auto& blocks : order)
            blocks.reserve(2 * microbatches);
    }

    void run()
    {
        int left = 4 * m_devices * m_half;
        for (int slot = 0; left > 0; ++slot)
            for (int device = 0; device < m_devices; ++device) {
                const Choice best = std::min(choice(device, 0, slot), choice(device, 1, slot));
                if (best.replica < 0)
                    continue;
                take(device, best, slot);
                --left;
            }
    }

    std::vector<std::vector<Block>> order;

private:
    static constexpr int notYet = std::numeric_limits<int>::max();
    struct Lane {
        std::vector<Block> blocks;
        std::size_t next = 0;
        std::vector<int> forwardEnd, backwardEnd; ///< first slot after the pass, per microbatch of the replica
    };
    /// The smallest goes first: backwards, then older microbatches.
    struct Choice {
        int rank = 2; ///< 0 backward, 1 forward, 2 nothing is ready
        int microbatch = 0, replica = -1;
        auto operator<=>(const Choice&) const = default;
    };

    int stageOn(int device, int replica) const { return replica == 0 ? device : m_devices - 1 - device; }
    Lane& lane(int replica, int stage) { return m_lanes[replica * m_devices + stage]; }

    Choice choice(int device, int replica, int slot)
    {
        const int stage = stageOn(device, replica);
        const Lane& here = lane(replica, stage);
        if (here.next == here.blocks.size())
            return {};
        const Block& block = here.blocks[here.next];
        int ready = 0;
        if (block.op == Op::F)
            ready = stage == 0 ? 0 : lane(replica, stage - 1).forwardEnd[block.microbatch];
        else
            ready = stage == m_devices - 1 ? here.forwardEnd[block.microbatch]
                                           : lane(replica, stage + 1).backwardEnd[block.microbatch];
        return ready <= slot ? Choice{block.op == Op::F ? 1 : 0, block.microbatch, replica} : Choice{};
    }

    void take(int device, const Choice& chosen, int slot)
    {
        Lane& here = lane(chosen.replica, stageOn(device, chosen.replica));
        Block block = here.blocks[here.next++];
        (block.op == Op::F ? here.forwardEnd : here.backwardEnd)[block.microbatch] = slot + 1;
        block.microbatch += chosen.replica * m_half;
        block.replica = chosen.replica;
        order[device].push_back(block);
    }

    int m_devices, m_half;
    std::vector<Lane> m_lanes; ///< [replica][stage]
};

Schedule makeChimera(const FamilyParameters& p)
{
    TwoWayRun run(p.devices, p.microbatches);
    run.run();
    Schedule schedule;
    schedule.deviceOfStage = linearPlacement(p.devices);
    schedule.replicaPlacements = {reversed(schedule.deviceOfStage)};
    schedule.order = std::move(run.order);
    return schedule;
}

} // namespace

Family chimera()
{
    return {.name = "chimera",
            .title = "Chimera",
            .description = "Two copies of the model run in opposite directions and fill each other's bubble.",
            .backward = BackwardStyle::Full,
            .check = checkTwoWays,
            .make = makeChimera};
}

} // namespace pipewright
