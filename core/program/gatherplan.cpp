// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/gatherplan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pipewright {

namespace {

/// The stages of one device whose parameters are gathered.
class DevicePlan {
public:
    DevicePlan(const Zero& zero, const OrderGraph& graph) : m_zero(zero), m_graph(graph) {}

    void addReader(BlockIndex block) { m_stages[m_graph.blocks[block].stage].readers.push_back(block); }

    /// What must be gathered before the blocks [begin, end), which start together.
    void addBefore(BlockIndex begin, BlockIndex end, std::vector<GatherPlan::Gather>& gathers)
    {
        std::vector<std::pair<BlockIndex, int>> next; // the readers that come next, each of another stage
        std::size_t now = 0;
        for (auto& [number, stage] : m_stages) {
            while (stage.next < stage.readers.size() && stage.readers[stage.next] < begin)
                ++stage.next;
            if (stage.next < stage.readers.size()) {
                next.emplace_back(stage.readers[stage.next], number);
                now += static_cast<std::size_t>(stage.readers[stage.next] < end);
            }
        }
        if (now == 0)
            return;
        std::sort(next.begin(), next.end());
        next.resize(std::min(next.size(), std::max(now, 1 + static_cast<std::size_t>(m_zero.prefetch))));
        for (auto& [number, stage] : m_stages)
            if (m_zero.reshard.of(number) && std::none_of(next.begin(), next.end(), [own = number](const auto& use) {
                    return use.second == own;
                }))
                stage.gathered = false;
        for (const auto& [reader, number] : next)
            if (!std::exchange(m_stages[number].gathered, true))
                gathers.push_back({begin, reader});
    }

private:
    struct Stage {
        std::vector<BlockIndex> readers;
        std::size_t next = 0;
        bool gathered = false;
    };
    const Zero& m_zero;
    const OrderGraph& m_graph;
    std::map<int, Stage> m_stages;
};

} // namespace

GatherPlan::GatherPlan(const Schedule& schedule, const std::vector<bool>& gathered, const OrderGraph& graph)
    : m_gathers(graph.firstOfDevice.size() - 1)
{
    for (std::size_t device = 0; device < m_gathers.size(); ++device) {
        const BlockIndex first = graph.firstOfDevice[device], behind = graph.firstOfDevice[device + 1];
        DevicePlan plan(schedule.zero, graph);
        for (BlockIndex i = first; i < behind; ++i)
            if (isPass(graph.blocks[i].op) && gathered[static_cast<std::size_t>(graph.blocks[i].stage)])
                plan.addReader(i);
        for (BlockIndex i = first; i < behind; i += graph.unitSize(i))
            plan.addBefore(i, i + graph.unitSize(i), m_gathers[device]);
    }
}

} // namespace pipewright
