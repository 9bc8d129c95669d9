// SPDX-License-Identifier: GPL-3.0-or-later
// Sorts the readers of every weight version by their time in the cyclic timetable and links neighbours. The timetable
// is that of Cyclic Data Parallelism, arXiv 2403.08837. O(blocks log blocks).
#include "core/schedule/weighthops.h"

#include <algorithm>

namespace pipewright {

WeightHops::WeightHops(const OrderGraph& graph, const WeightPlan& plan, const Schedule& schedule)
{
    if (!schedule.shardedStates)
        return;
    std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, BlockIndex>>> readers;
    for (BlockIndex i = 0; i < graph.blocks.size(); ++i)
        if (const Block& block = graph.blocks[i]; makesActivation(block.op) || isFullBackward(block.op))
            readers[{block.stage, plan.reads[i].version}].emplace_back(
                cyclicTime(block.op, schedule.stages(), block.stage, block.microbatch), i);
    for (auto& [version, byTime] : readers) {
        std::sort(byTime.begin(), byTime.end());
        m_first[version] = byTime.front().second;
        for (std::size_t k = 1; k < byTime.size(); ++k)
            m_after[byTime[k - 1].second] = byTime[k].second;
    }
}

} // namespace pipewright
