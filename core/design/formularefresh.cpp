// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/formularefresh.h"

#include "core/design/stagecosts.h"
#include "core/design/stageplans.h"

#include <utility>

namespace pipewright {

bool isFormula(const Design& design)
{
    return design.workload && design.costs.isFormula() && !design.costs.source.ends_with("times given");
}

void refreshFormulaCosts(const Design& base, Design& design)
{
    design.plans = carriedPlans(base, design);
    Dataflow dataflow = design.dataflow;
    dataflow.shared.clear();
    const Costs before = std::move(design.costs);
    design.costs = formulaCosts(*design.workload, design.layersPerStage, design.cluster, design.schedule.deviceOfStage,
                                &dataflow, nullptr, design.schedule.memoryChoices(), design.plans);
    design.costs.hostGaps = before.hostGaps; // no formula knows them
    design.costs.communication = before.communication;
    design.costs.overlapFactor = before.overlapFactor;
    if (before.overlapFactor != 1 && !before.hasParts()) // the user has stated the length of pairs
        for (StageCosts& stage : design.costs.stages)
            stage.parts = {};
    design.dataflow = std::move(dataflow);
}

} // namespace pipewright
