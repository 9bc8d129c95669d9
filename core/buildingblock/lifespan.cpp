// SPDX-License-Identifier: GPL-3.0-or-later
// Visits every pass once per stage.
#include "core/buildingblock/lifespan.h"

#include <algorithm>

namespace pipewright {

int lifespan(const BuildingBlock& block, int stage)
{
    int begin = 0, end = 0;
    for (const BuildingBlock::Pass& pass : block.passes) {
        if (pass.stage != stage)
            continue;
        if (makesActivation(pass.op))
            begin = pass.start;
        else
            end = std::max(end, pass.end());
    }
    return end - begin;
}

std::vector<int> liveBound(const BuildingBlock& block)
{
    std::vector<int> bound(block.devices(), 0);
    for (int stage = 0; stage < block.stages(); ++stage)
        bound[block.deviceOfStage[stage]] += (lifespan(block, stage) + block.interval - 1) / block.interval;
    return bound;
}

} // namespace pipewright
