// SPDX-License-Identifier: GPL-3.0-or-later
// Regenerates only what the changed premise touches: schedule, partition or costs. Costs that are not from a formula
// are divided among layers and summed again for the new cut. O(layers + blocks).
#include "core/design/redesign.h"
#include "core/design/recutcosts.h"

#include "core/design/clusterlinks.h"
#include "core/design/familywork.h"
#include "core/design/formularefresh.h"
#include "core/design/newdesign.h"
#include "core/design/stagecosts.h"
#include "core/design/stageplans.h"
#include "core/design/unevenness.h"
#include "core/model/transformer.h"
#include "core/schedule/recomputeblocks.h"
#include "core/schedule/replicas.h"
#include "core/schedule/weightplan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipewright {

namespace {

/// Whether the name is the generated title. An edited order has no family any more but keeps the title of its former
/// family.
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

/// Extends the list to `devices`: an unknown device gets the average of the others.
void fitHostGaps(std::vector<HostGaps>& gaps, std::size_t devices)
{
    const std::size_t known = gaps.size();
    if (known == 0 || known == devices)
        return;
    HostGaps usual;
    for (const Op op : allOps) {
        Nanoseconds sum = 0;
        for (const HostGaps& each : gaps)
            sum += each.before[indexOf(op)];
        usual.before[indexOf(op)] = sum / static_cast<Nanoseconds>(known);
    }
    usual.origin.fill(CostOrigin::Estimated);
    gaps.resize(devices, usual);
}

/// Without a model the saved bytes are moved as a whole between F and R.
void moveBytes(StageCosts& stage, Recompute now, int sequencePieces, std::size_t number)
{
    if (now == Recompute::Block && sequencePieces > 1)
        throw Error(
            "schedule.recompute",
            fmt::format("without a model it is unknown which of the kept bytes are keys and values, which later "
                        "pieces of a sequence read, and which stage {} can make again",
                        number),
            "make the design from a model, or leave sequences whole");
    if (now.coresOnly())
        throw Error("schedule.recompute",
                    fmt::format("without a model it is unknown what stage {} keeps besides its attention", number),
                    "use block or none, or make the design from a model");
    if (now.insideBackward())
        throw Error("schedule.recompute",
                    fmt::format("without a model it is unknown which layers stage {} has", number),
                    "use block or none, or make the design from a model");
    const auto move = [&](Bytes& saved, Bytes& recomputed) {
        const Bytes all = saved + recomputed;
        saved = now == Recompute::Block ? 0 : all;
        recomputed = all - saved;
    };
    move(stage.savedUntilInputGrad, stage.recomputedUntilInputGrad);
    move(stage.savedUntilWeightGrad, stage.recomputedUntilWeightGrad);
}

/// Carries recomputation or offload over to another number of stages, by relative place.
template<typename Choice>
std::vector<Choice> inProportion(const std::vector<Choice>& ofStage, int stages)
{
    std::vector<Choice> result;
    for (int s = 0; !ofStage.empty() && s < stages; ++s)
        result.push_back(ofStage[s * ofStage.size() / stages]);
    return result;
}

NodeLinks nodeLinksOf(const Design& design)
{
    return nodeLinksOf(design.cluster, design.workload ? design.workload->shape.parallel : Parallelism{});
}

/// After a recut: takes the links of the pairs of devices that still exist, and the shared parameters of the new cut.
void takeLinks(const Design& base, Design& design)
{
    design.costs.linkOfPair.clear();
    for (const auto& [pair, link] : base.costs.linkOfPair)
        if (std::max(pair.first, pair.second) < design.schedule.devices())
            design.costs.linkOfPair[pair] = link;
    if (!design.workload)
        return;
    design.dataflow.shared = sharedParametersOn(design.cluster, *design.workload, design.layersPerStage);
    const auto joins = [](const SharedParameter& shared) { return shared.joinsStages(); };
    if (std::none_of(base.dataflow.shared.begin(), base.dataflow.shared.end(), joins))
        for (const SharedParameter& shared : design.dataflow.shared)
            if (joins(shared) && !design.costs.nodeLinks.any()) // there and back again
                design.costs.reduce = std::max(design.costs.reduce, 2 * design.costs.link.transferTime(shared.bytes));
}

} // namespace

Design withSequencePieces(const Design& base, int pieces)
{
    const int before = base.schedule.sequencePieces;
    Design design = base;
    if (before == pieces)
        return design;
    design.costs.microbatches.clear();
    const auto share = [&](std::int64_t& value) { value = value * before / pieces; };
    for (StageCosts& stage : design.costs.stages) {
        for (const Op op : allOps)
            if (isPass(op)) { // the update does not depend on the microbatch
                share(stage.*timeField(op));
                stage.origin[indexOf(op)] = CostOrigin::Estimated;
            }
        stage.fitParts();
        for (Bytes* bytes : {&stage.savedUntilInputGrad, &stage.savedUntilWeightGrad, &stage.savedFromInputGrad,
                             &stage.sparedByBackward, &stage.recomputedUntilInputGrad, &stage.recomputedUntilWeightGrad,
                             &stage.output, &stage.workspaceForward, &stage.workspaceInputGrad,
                             &stage.workspaceWeightGrad, &stage.workspaceBackward, &stage.workspaceRecompute})
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
        applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), design.costs);
    return design;
}

Design withRecompute(const Design& base, const std::vector<Recompute>& ofStage)
{
    Design design = base;
    design.schedule = withRecompute(base.schedule, ofStage);
    const bool hasModel = design.workload && !design.layersPerStage.empty();
    if (hasModel && isFormula(base)) {
        refreshFormulaCosts(base, design);
        return design;
    }
    if (hasModel)
        applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), design.costs);
    for (std::size_t s = 0; s < design.costs.stages.size(); ++s) {
        const Recompute before = base.schedule.recomputeOf(static_cast<int>(s)),
                        now = design.schedule.recomputeOf(static_cast<int>(s));
        if (before == now)
            continue;
        StageCosts& stage = design.costs.stages[s];
        const Nanoseconds forward = stage.forward;
        if (!hasModel)
            moveBytes(stage, now, design.schedule.sequencePieces, s);
        if (before.insideBackward())
            stage.lengthenBackward(-stage.recompute);
        const bool isWhole = now == Recompute::Block || now == Recompute::None,
                   wasWhole = before == Recompute::Block || before == Recompute::None;
        if (!isWhole || !wasWhole || stage.recompute == 0) {
            stage.recompute = isWhole
                                  ? forward
                                  : std::llround(static_cast<double>(forward)
                                                 * recomputedShares(*design.workload, design.layersPerStage, now)[s]);
            // A whole stage has the parts of the forward; the parts of the attention alone are unknown.
            stage.parts[indexOf(Op::R)] = isWhole ? stage.parts[indexOf(Op::F)] : std::vector<BlockPart>{};
            stage.origin[indexOf(Op::R)] = CostOrigin::Estimated;
        }
        if (now.insideBackward())
            stage.lengthenBackward(stage.recompute);
        if (now.insideBackward() || before.insideBackward())
            stage.origin[indexOf(Op::I)] = stage.origin[indexOf(Op::B)] = CostOrigin::Estimated;
    }
    return design;
}

std::optional<Design> withoutInsideRecompute(const Design& base)
{
    std::vector<Recompute> byBlock = base.schedule.recompute;
    for (Recompute& recompute : byBlock)
        if (recompute.insideBackward())
            recompute = Recompute::None;
    if (isFormula(base) || byBlock == base.schedule.recompute)
        return std::nullopt;
    return withRecompute(base, byBlock);
}

int copiesSharing(const Design& design)
{
    const Parallelism parallel = design.workload ? design.workload->shape.parallel : Parallelism{};
    return design.schedule.replicas() * parallel.data
           * (design.schedule.zero.over == Zero::Over::DataAndContext ? parallel.context : 1);
}

void requireCopies(const Design& design, const char* where)
{
    if (design.schedule.zero.level > 0 && copiesSharing(design) == 1)
        throw Error(where, "one copy of the pipeline has nobody to share its states with",
                    "make the design with --replicas N or --data-parallel N");
    if (design.schedule.sharesGradientsOfReplicas()) {
        const Parallelism parallel = design.workload ? design.workload->shape.parallel : Parallelism{};
        if (parallel.data * parallel.context > 1)
            throw Error(where, "copies that are drawn and counted, too, share out the optimizer's state alone",
                        "take level 1, or copies of one kind");
        if (design.schedule.zero.reduce == Zero::Reduce::Each)
            throw Error(where, "drawn replicas sum their gradients once, in the order of a run that shares out nothing",
                        "sum them after the last microbatch (--reduce last), or take copies that are only counted "
                        "(--data-parallel N) of a pipeline that runs one way");
    }
    if (design.schedule.zero.sharesGradients() && hasUpdates(design.schedule))
        throw Error(where, "gradients are shared out at the end of a step, and this schedule updates amid it",
                    "take level 1, or a family that updates at the end of a step");
}

Design withZero(const Design& base, const Zero& zero)
{
    Design design = base;
    design.schedule.zero = zero;
    requireCopies(design, "schedule.zero");
    if (!design.workload || design.layersPerStage.empty())
        return design;
    if (isFormula(base))
        refreshFormulaCosts(base, design);
    else
        applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), design.costs);
    return design;
}

Design withOffload(const Design& base, std::vector<bool> ofStage)
{
    Design design = base;
    if (std::find(ofStage.begin(), ofStage.end(), true) == ofStage.end())
        ofStage.clear();
    if (!ofStage.empty() && !design.costs.hostLink)
        throw Error("schedule.offload", "nothing is known of the link between a device and the host's memory",
                    "state it: --host-link 25GB (bytes per second), or \"host_link\" of the cluster or the costs");
    design.schedule.offload = std::move(ofStage);
    return design;
}

namespace {

/// As withSchedule() says.
Optimizer optimizerUnder(const Schedule& schedule, const Design& base)
{
    if (hasUpdates(schedule))
        return inModel(schedule.weightPolicy.optimizer);
    return hasUpdates(base.schedule) ? Optimizer::AdamW : base.workload->optimizer;
}

} // namespace

Design withSchedule(const Design& original, Schedule schedule, std::vector<int> layersPerStage,
                    std::optional<Unevenness> given)
{
    const Unevenness uneven = given.value_or(unevennessOf(original).assumed);
    const bool sameCut = schedule.deviceOfStage == original.schedule.deviceOfStage
                         && (layersPerStage.empty() || layersPerStage == original.layersPerStage);
    // Recomputation changes the costs.
    if (original.schedule.recompute != schedule.recompute || (!sameCut && withoutInsideRecompute(original))) {
        const std::vector<Recompute> recompute = std::exchange(schedule.recompute, {});
        const Schedule plain = withRecompute(schedule, {});
        Design design = withSchedule(withRecompute(original, {}), plain, std::move(layersPerStage), uneven);
        design = withRecompute(design, recompute);
        design.schedule.order = std::move(schedule.order);
        design.schedule.overlaps = std::move(schedule.overlaps);
        design.schedule.partOrders = std::move(schedule.partOrders);
        design.schedule.pins = std::move(schedule.pins);
        design.schedule.gathers = std::move(schedule.gathers);
        return design;
    }
    const Design cut = withSequencePieces(original, schedule.sequencePieces);
    const Design headed = hasUpdates(schedule) ? withOwnHead(cut) : cut;
    const Design base = headed.workload ? withOptimizer(headed, optimizerUnder(schedule, headed)) : headed;
    const bool samePieces = original.schedule.sequencePieces == schedule.sequencePieces;
    Design design = base;
    if (schedule.microbatches != original.schedule.microbatches)
        design.costs.microbatches.clear();
    design.buildingBlock.reset();
    design.schedule = std::move(schedule);
    const std::vector<int>& placement = design.schedule.deviceOfStage;
    const bool samePlacement = placement == base.schedule.deviceOfStage;
    if (samePlacement && (layersPerStage.empty() || layersPerStage == base.layersPerStage)) {
        if (!samePieces && isFormula(base))
            refreshFormulaCosts(base, design);
    } else if (base.workload && (isFormula(base) || !base.layersPerStage.empty())) {
        design.layersPerStage = layersPerStage.empty() ? evenPartition(*base.workload, design.schedule.stages())
                                                       : std::move(layersPerStage);
        if (isFormula(base)) {
            design.dataflow = {};
            refreshFormulaCosts(base, design);
        } else {
            design.costs = recutCosts(*base.workload, design.costs, {base.layersPerStage, base.schedule.deviceOfStage},
                                      {design.layersPerStage, placement, design.schedule.memoryChoices()}, uneven);
            design.plans = carriedPlans(base, design);
            takeLinks(base, design);
        }
    } else {
        design.costs = shareOutCosts(design.costs, base.schedule.deviceOfStage, placement, uneven);
        for (std::size_t s = 0; !design.schedule.recompute.empty() && s < design.costs.stages.size(); ++s)
            moveBytes(design.costs.stages[s], design.schedule.recomputeOf(static_cast<int>(s)),
                      design.schedule.sequencePieces, s);
        takeLinks(base, design);
        design.dataflow = {};
        design.plans.clear();
        design.layersPerStage.clear();
    }
    fitHostGaps(design.costs.hostGaps, design.schedule.devices());
    if (isNamedByTitle(original))
        design.name = titleOf(design);
    return design;
}

void carryMemoryChoices(const Schedule& from, Schedule& to)
{
    if (mayRecompute(to))
        to = withRecompute(to, inProportion(from.recompute, to.stages()));
    to.offload = inProportion(from.offload, to.stages());
    if (to.zero.level == 0)
        to.zero = from.zero;
}

Design withFamily(const Design& base, const Family& family, const FamilyChoice& choice, std::function<bool()> stop)
{
    FamilyParameters parameters;
    parameters.devices = base.schedule.devices();
    parameters.microbatches = base.schedule.microbatches / base.schedule.sequencePieces;
    if (!family.updates)
        parameters.replicas = pipelinesOf(base.schedule);
    parameters.chunks = choice.chunks;
    parameters.memoryLimit = choice.memoryLimit;
    parameters.stop = std::move(stop);
    takeWork(parameters, base.costs);
    takeMemory(parameters, family, base);
    Schedule schedule = makeSchedule(family.name, parameters);
    carryMemoryChoices(base.schedule, schedule);
    return withSchedule(base, std::move(schedule));
}

Design withDevices(const Design& base, int devices)
{
    Design design = base;
    Cluster& cluster = design.cluster;
    if (cluster.devices.empty() || std::ssize(cluster.devices) == devices)
        return design;
    cluster.devices.resize(devices, DeviceSpec(cluster.devices.back()));
    cluster.gpus.clear();
    std::erase_if(cluster.linkOfPair,
                  [&](const auto& entry) { return std::max(entry.first.first, entry.first.second) >= devices; });
    if (base.costs.link == linkCosts(base.cluster) && base.costs.nodeLinks == nodeLinksOf(base))
        design.costs.nodeLinks = nodeLinksOf(design);
    return design;
}

Design withPartition(const Design& base, std::vector<int> layersPerStage)
{
    if (const std::optional<Design> plain = withoutInsideRecompute(base))
        return withRecompute(withPartition(*plain, std::move(layersPerStage)), base.schedule.recompute);
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
        refreshFormulaCosts(base, design);
    } else {
        design.plans = carriedPlans(base, design);
        const auto links = design.costs.linkOfPair; // the stages stay on their devices, and so do the links
        design.costs = recutCosts(*base.workload, base.costs, {base.layersPerStage},
                                  {design.layersPerStage, {}, design.schedule.memoryChoices()});
        design.costs.linkOfPair = links;
        design.dataflow.shared = sharedParametersOn(base.cluster, *base.workload, design.layersPerStage);
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
        refreshFormulaCosts(base, design);
        return design;
    }
    design.plans = carriedPlans(base, design);
    if (base.workload && !base.layersPerStage.empty()
        && base.dataflow.shared == sharedParametersOn(base.cluster, *base.workload, base.layersPerStage))
        design.dataflow.shared = sharedParametersOn(design.cluster, *base.workload, base.layersPerStage);
    if (!(design.cluster.link == base.cluster.link))
        design.costs.link = linkCosts(design.cluster);
    if (const NodeLinks links = nodeLinksOf(design); links != nodeLinksOf(base))
        design.costs.nodeLinks = links;
    if (design.cluster.hostLink != base.cluster.hostLink)
        design.costs.hostLink =
            design.cluster.hostLink ? std::optional(linkCosts(*design.cluster.hostLink)) : std::nullopt;
    if (design.cluster.linkOfPair != base.cluster.linkOfPair) {
        design.costs.linkOfPair.clear();
        for (const auto& [pair, link] : design.cluster.linkOfPair)
            design.costs.linkOfPair[pair] = linkCosts(link);
    }
    return design;
}

} // namespace pipewright
