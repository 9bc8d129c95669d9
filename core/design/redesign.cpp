// SPDX-License-Identifier: GPL-3.0-or-later
// Regenerates only what the changed premise touches: schedule, partition or costs. Costs that no formula gave are
// spread over layers and summed again for the new cut. O(layers + blocks).
#include "core/design/redesign.h"

#include "core/design/newdesign.h"
#include "core/design/stagecosts.h"
#include "core/schedule/weightplan.h"
#include "core/workload/transformer.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// One device's worth of work, on average, for the families that search and for costs without a model.
DeviceWorth worthOf(const Costs& costs, int devices)
{
    DeviceWorth worth;
    worth.forward = worth.inputGrad = worth.weightGrad = 0;
    worth.transfer = costs.link.latency;
    for (const StageCosts& stage : costs.stages) {
        worth.forward += stage.forward;
        worth.inputGrad += stage.inputGrad;
        worth.weightGrad += stage.weightGrad;
        worth.saved += stage.savedUntilInputGrad + stage.savedUntilWeightGrad;
        worth.savedForWeightGrad += stage.savedUntilWeightGrad;
    }
    const int count = std::max(1, devices);
    worth.forward /= count;
    worth.inputGrad /= count;
    worth.weightGrad /= count;
    worth.saved /= count;
    worth.savedForWeightGrad /= count;
    if (!costs.stages.empty())
        worth.transfer = costs.link.transferTime(costs.stages.front().output);
    return worth;
}

bool isFormula(const Design& design)
{
    return design.workload && design.costs.source.starts_with("formula");
}

/// Whether the name is the title that was made for it. An edited order is of no family any more and keeps the title
/// of the one that it was.
bool isNamedByTitle(const Design& design)
{
    if (design.name == titleOf(design))
        return true;
    if (findFamily(design.schedule.family))
        return false;
    Design of;
    of.workload = design.workload;
    of.schedule.deviceOfStage = design.schedule.deviceOfStage;
    return std::any_of(families().begin(), families().end(), [&](const Family& family) {
        of.schedule.family = family.name;
        return titleOf(of) == design.name;
    });
}

void refreshFormulaCosts(Design& design)
{
    Dataflow dataflow = design.dataflow;
    dataflow.shared.clear();
    design.costs =
        formulaCosts(*design.workload, design.layersPerStage, design.cluster, design.schedule.deviceOfStage, &dataflow);
    design.dataflow = std::move(dataflow);
}

} // namespace

void takeWork(FamilyParameters& parameters, const Costs& costs)
{
    const DeviceWorth worth = worthOf(costs, parameters.devices);
    parameters.forward = std::max<Nanoseconds>(1, worth.forward);
    parameters.inputGrad = std::max<Nanoseconds>(1, worth.inputGrad);
    parameters.weightGrad = std::max<Nanoseconds>(1, worth.weightGrad);
    parameters.transfer = worth.transfer;
}

Design withSequencePieces(const Design& base, int pieces)
{
    const int before = base.schedule.sequencePieces;
    Design design = base;
    if (before == pieces)
        return design;
    design.costs.microbatches.clear();
    const auto share = [&](std::int64_t& value) { value = value * before / pieces; };
    for (StageCosts& stage : design.costs.stages) {
        static_assert(opCount == 6, "all times but that of the update, which does not depend on the microbatch");
        for (Nanoseconds* time :
             {&stage.forward, &stage.inputGrad, &stage.weightGrad, &stage.backward, &stage.recompute})
            share(*time);
        for (Bytes* bytes :
             {&stage.savedUntilInputGrad, &stage.savedUntilWeightGrad, &stage.savedFromInputGrad, &stage.output,
              &stage.workspaceForward, &stage.workspaceInputGrad, &stage.workspaceWeightGrad, &stage.workspaceBackward})
            share(*bytes);
    }
    if (!design.workload)
        return design;
    ModelShape shape = design.workload->shape;
    shape.sequencePieces = pieces;
    if (const Diagnostics wrong = checkShape(shape); hasErrors(wrong))
        throw Error(wrong);
    const StateBytesPerParameter state = design.workload->state;
    design.workload = makeWorkload(shape, design.workload->optimizer, design.workload->source);
    design.workload->state = state;
    if (!design.layersPerStage.empty())
        applyBytes(*design.workload, design.layersPerStage, design.costs);
    return design;
}

Design withOwnHead(const Design& base)
{
    Design design = base;
    if (!design.workload || !design.workload->shape.tiedHead)
        return design;
    ModelShape shape = design.workload->shape;
    shape.tiedHead = false;
    const StateBytesPerParameter state = design.workload->state;
    design.workload = makeWorkload(shape, design.workload->optimizer, design.workload->source);
    design.workload->state = state;
    design.dataflow.shared.clear();
    if (!design.layersPerStage.empty())
        applyBytes(*design.workload, design.layersPerStage, design.costs);
    return design;
}

Design withSchedule(const Design& original, Schedule schedule)
{
    const Design cut = withSequencePieces(original, schedule.sequencePieces);
    const Design base = hasUpdates(schedule) ? withOwnHead(cut) : cut;
    const bool samePieces = original.schedule.sequencePieces == schedule.sequencePieces;
    Design design = base;
    if (schedule.microbatches != original.schedule.microbatches)
        design.costs.microbatches.clear();
    design.buildingBlock.reset();
    design.schedule = std::move(schedule);
    if (!samePieces && isFormula(base) && design.schedule.deviceOfStage == base.schedule.deviceOfStage) {
        refreshFormulaCosts(design);
    } else if (design.schedule.deviceOfStage != base.schedule.deviceOfStage) {
        const int stages = design.schedule.stages();
        if (isFormula(base)) {
            design.layersPerStage = evenPartition(*base.workload, stages);
            design.dataflow = {};
            refreshFormulaCosts(design);
        } else if (base.workload && !base.layersPerStage.empty()) {
            design.layersPerStage = evenPartition(*base.workload, stages);
            design.costs = recutCosts(*base.workload, base.costs, base.layersPerStage, design.layersPerStage);
            design.dataflow.shared = sharedParametersOf(*base.workload, design.layersPerStage);
        } else {
            const DeviceWorth worth = worthOf(base.costs, base.schedule.devices()); // of a piece already
            design.costs = uniformCosts(worth, stages, design.schedule.chunks());
            design.costs.source = base.costs.source;
            design.dataflow = {};
            design.layersPerStage.clear();
        }
    }
    if (isNamedByTitle(original))
        design.name = titleOf(design);
    return design;
}

Design withFamily(const Design& base, const Family& family, const FamilyChoice& choice, std::function<bool()> stop)
{
    FamilyParameters parameters;
    parameters.devices = base.schedule.devices();
    parameters.microbatches = base.schedule.microbatches / base.schedule.sequencePieces;
    parameters.chunks = choice.chunks;
    parameters.memoryLimit = choice.memoryLimit;
    parameters.stop = std::move(stop);
    takeWork(parameters, base.costs);
    return withSchedule(base, makeSchedule(family.name, parameters));
}

Design withPartition(const Design& base, std::vector<int> layersPerStage)
{
    if (!base.workload || base.layersPerStage.empty())
        throw Error("partition", "there is no model to cut", "make the design from a model");
    if (layersPerStage.size() != base.layersPerStage.size())
        throw Error(
            "partition",
            fmt::format("{} stages where the schedule has {}", layersPerStage.size(), base.layersPerStage.size()),
            "give one number per stage");
    Design design = base;
    design.layersPerStage = std::move(layersPerStage);
    if (isFormula(base)) {
        refreshFormulaCosts(design);
    } else {
        const auto links = design.costs.linkOfPair; // the stages stay on their devices, and so do the links
        design.costs = recutCosts(*base.workload, base.costs, base.layersPerStage, design.layersPerStage);
        design.costs.linkOfPair = links;
        design.dataflow.shared = sharedParametersOf(*base.workload, design.layersPerStage);
    }
    return design;
}

std::vector<int> withBorderMoved(std::vector<int> layersPerStage, std::size_t border, int layers)
{
    int& before = layersPerStage[border];
    int& behind = layersPerStage[border + 1];
    const int moved = std::clamp(layers, 1 - before, behind - 1);
    before += moved;
    behind -= moved;
    return layersPerStage;
}

Design withCluster(const Design& base, Cluster cluster)
{
    if (cluster.devices.size() != base.cluster.devices.size())
        throw Error("cluster",
                    fmt::format("{} devices in place of {}", cluster.devices.size(), base.cluster.devices.size()),
                    "another number of devices is another schedule: make a new one");
    Design design = base;
    design.cluster = std::move(cluster);
    if (isFormula(base) && !base.layersPerStage.empty()) {
        refreshFormulaCosts(design);
        return design;
    }
    if (!(design.cluster.link == base.cluster.link))
        design.costs.link = linkCosts(design.cluster.link);
    if (design.cluster.linkOfPair != base.cluster.linkOfPair) {
        design.costs.linkOfPair.clear();
        for (const auto& [pair, link] : design.cluster.linkOfPair)
            design.costs.linkOfPair[pair] = linkCosts(link);
    }
    return design;
}

} // namespace pipewright
