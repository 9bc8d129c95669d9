// SPDX-License-Identifier: GPL-3.0-or-later
// On the list is what the model counts exactly, what can only make an order longer than in the model, and what has no
// effect on times and memory.
#include "core/search/modelled.h"

#include "core/base/takeout.h"
#include "core/design/groupstages.h"

#include <algorithm>

namespace pipewright {

namespace {

using pipewright::takeOut;

void takeOut(LinkCosts& link)
{
    takeOut(link.latency, link.bytesPerSecond, link.origin);
    takeOut(link.bus); // a transfer may wait for it
}

void takeOut(StageCosts& stage)
{
    const StageCosts none;
    for (const Op op : allOps)
        stage.*timeField(op) = none.*timeField(op);
    takeOut(stage.savedUntilInputGrad, stage.savedUntilWeightGrad, stage.savedFromInputGrad, stage.sparedByBackward,
            stage.recomputedUntilInputGrad, stage.recomputedUntilWeightGrad, stage.output);
    takeOut(stage.workspaceForward, stage.workspaceInputGrad, stage.workspaceWeightGrad, stage.workspaceBackward,
            stage.workspaceRecompute);
    takeOut(stage.parameters, stage.gradients, stage.optimizerState, stage.framework, stage.narrowWeights);
    takeOut(stage.reduceGradients, stage.gather); // blocks may wait for them, or they come behind the last one
    takeOut(stage.wholeGradients, stage.gatheredParameters); // held at times besides
    takeOut(stage.origin, stage.spread);
    takeOut(stage.parts);            // of a block that runs alone their times add up to its own
    takeOut(stage.sequenceGradient); // of pieces of sequences, which are not searched
}

void takeOut(Costs& costs)
{
    for (StageCosts& stage : costs.stages)
        takeOut(stage);
    if (std::ranges::all_of(costs.stages, [](const StageCosts& stage) { return stage == StageCosts{}; }))
        costs.stages.clear();
    takeOut(costs.link);
    for (auto& [pair, link] : costs.linkOfPair)
        takeOut(link);
    std::erase_if(costs.linkOfPair, [](const auto& pair) { return pair.second == LinkCosts{}; });
    takeOut(costs.nodeLinks); // of pairs too
    takeOut(costs.microbatches, costs.hostGaps);
    takeOut(costs.communication, costs.reduce);  // transfers that wait, and sums behind the last block
    costs.overlapFactor = Costs{}.overlapFactor; // of overlapped pairs, which are not searched
    takeOut(costs.hostLink);                     // of stages that offload
    costs.source = Costs{}.source;
}

void takeOut(Schedule& schedule)
{
    takeOut(schedule.microbatches, schedule.deviceOfStage, schedule.recompute, schedule.order, schedule.backward,
            schedule.pins);
    takeOut(schedule.firstStageMaySplit); // the model always lets it split
    takeOut(schedule.transferOrder);      // a transfer may wait for another
    takeOut(schedule.partOrders);         // of overlapped pairs
    takeOut(schedule.gathers);            // a gather may come earlier or later
    takeOut(schedule.weightPolicy);       // of update blocks, which are not searched
    takeOut(schedule.family);
    if (!schedule.sharesOptimizer())
        takeOut(schedule.zero); // of copies that are only counted: in the stages' costs
    if (std::ranges::find(schedule.offload, true) == schedule.offload.end())
        takeOut(schedule.offload);
}

void takeOut(Dataflow& dataflow)
{
    takeOut(dataflow.skips);
    takeOut(dataflow.shared); // summed behind the last block
}

} // namespace

bool isPlacedWhole(const Schedule& schedule)
{
    Schedule rest = schedule;
    takeOut(rest);
    return rest == Schedule{};
}

std::string whyNotProved(const Design& design)
{
    if (hasGroups(design))
        return "a step of groups, as their members run it, may be shorter than that of the groups, which is counted";
    Design rest = design;
    takeOut(rest.name, rest.workload, rest.layersPerStage, rest.buildingBlock, rest.plans);
    takeOut(rest.cluster); // but for groups, only the memory of its devices counts: its times are in the costs
    takeOut(rest.schedule);
    takeOut(rest.costs);
    takeOut(rest.dataflow);
    const Design none;
    if (rest == none)
        return {};
    return std::string("the search does not count all that ")
           + (!(rest.schedule == none.schedule)   ? "the schedule states"
              : !(rest.costs == none.costs)       ? "the costs state"
              : !(rest.dataflow == none.dataflow) ? "the dataflow states"
                                                  : "the design states");
}

} // namespace pipewright
