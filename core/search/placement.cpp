// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/placement.h"

#include "core/base/diagnostic.h"
#include "core/design/recutcosts.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/design/stageplans.h"

namespace pipewright {

std::string_view nameOf(PlacementShape shape)
{
    switch (shape) {
    case PlacementShape::Given: return "as it was";
    case PlacementShape::Linear: return "linear";
    case PlacementShape::Looped: return "looped";
    case PlacementShape::V: return "v";
    case PlacementShape::Wave: return "wave";
    case PlacementShape::Free: return "free";
    }
    return {};
}

std::vector<int> placementOf(PlacementShape shape, int devices)
{
    std::vector<int> deviceOfStage;
    const auto pass = [&](bool down) {
        for (int d = 0; d < devices; ++d)
            deviceOfStage.push_back(down ? d : devices - 1 - d);
    };
    switch (shape) {
    case PlacementShape::Linear: pass(true); break;
    case PlacementShape::Looped: pass(true), pass(true); break;
    case PlacementShape::V: pass(true), pass(false); break;
    case PlacementShape::Wave: pass(true), pass(false), pass(true), pass(false); break;
    case PlacementShape::Given:
    case PlacementShape::Free: break;
    }
    return deviceOfStage;
}

void placeInTurn(Schedule& schedule)
{
    for (std::vector<Block>& lane : schedule.order)
        lane.clear();
    const auto place = [&](Op op, int s, int m) { schedule.order[schedule.deviceOfStage[s]].push_back({op, s, m, 0}); };
    for (int m = 0; m < schedule.microbatches; ++m) {
        for (int s = 0; s < schedule.stages(); ++s)
            place(Op::F, s, m);
        for (int s = schedule.stages(); s-- > 0;) {
            if (schedule.recomputeOf(s).byBlock())
                place(Op::R, s, m);
            for (const Op op : allOps)
                if (isBackward(op) && isNeeded(op, schedule.backward))
                    place(op, s, m);
        }
    }
}

Design withPlacement(const Design& base, const std::vector<int>& deviceOfStage, const std::vector<int>& layersPerStage,
                     sharding::SharedStages* known)
{
    if (!base.workload || base.layersPerStage.empty())
        throw Error("partition", "there is no model to cut", "make the design from a model");
    if (!base.dataflow.skips.empty())
        throw Error("partition", "its skip connections join stages, and another cut has other stages",
                    "keep the partition and the placement of this design");
    if (!base.schedule.recompute.empty() && base.schedule.recompute.size() != deviceOfStage.size())
        throw Error("schedule.recompute", "its stages recompute, and this placement has another number of stages",
                    "search the placement of the design made with --recompute none, then that result with "
                    "--recompute auto");
    if (const std::optional<Design> plain = withoutInsideRecompute(base))
        return withRecompute(withPlacement(*plain, deviceOfStage, layersPerStage, known), base.schedule.recompute);
    Design design = base;
    design.buildingBlock.reset();
    design.schedule.family = "custom";
    design.schedule.deviceOfStage = deviceOfStage;
    design.schedule.pins.clear();
    design.schedule.overlaps.clear();
    design.schedule.partOrders.clear();
    design.schedule.gathers.clear();
    placeInTurn(design.schedule);
    design.layersPerStage = layersPerStage;
    design.dataflow.shared.clear();
    design.plans = carriedPlans(base, design);
    if (base.costs.isFormula()) {
        design.costs = formulaCosts(*base.workload, layersPerStage, base.cluster, deviceOfStage, &design.dataflow,
                                    known, design.schedule.memoryChoices(), design.plans);
        design.costs.microbatches = base.costs.microbatches;
        design.costs.communication = base.costs.communication;
        design.costs.hostGaps = base.costs.hostGaps;
    } else {
        design.costs = recutCosts(*base.workload, base.costs, {base.layersPerStage},
                                  {layersPerStage, {}, design.schedule.memoryChoices()});
        design.costs.linkOfPair = base.costs.linkOfPair;
        design.dataflow.shared = sharedParametersOn(base.cluster, *base.workload, layersPerStage);
    }
    return design;
}

} // namespace pipewright
