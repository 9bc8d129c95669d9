// SPDX-License-Identifier: GPL-3.0-or-later
// Sums FLOPs and bytes over each stage's layers and divides by the device's rates; link times from bytes of the
// boundary. O(layers + stages).
#include "core/design/stagecosts.h"

#include "core/base/diagnostic.h"
#include "core/cluster/devicename.h"
#include "core/design/clusterlinks.h"
#include "core/design/expertparts.h"
#include "core/design/groupcosts.h"
#include "core/design/membertimes.h"
#include "core/design/operationtimes.h"
#include "core/design/stageparameters.h"
#include "core/model/autogradstage.h"
#include "core/model/frameworklayers.h"
#include "core/model/layersofgraph.h"
#include "core/model/modelgraph.h"
#include "core/model/parallelism.h"
#include "core/model/passmemory.h"
#include "core/model/recomputedtensors.h"
#include "core/model/transformer.h"
#include "core/rates/operationrates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <span>

namespace pipewright {

std::vector<std::span<const Layer>> layersOfStages(const Workload& workload, const std::vector<int>& layersPerStage)
{
    std::vector<std::span<const Layer>> stages;
    std::size_t begin = 0;
    for (const int count : layersPerStage) {
        if (count < 1)
            throw Error("layers_per_stage", fmt::format("a stage has {} layers", count),
                        "give every stage at least one");
        if (begin + count > workload.layers.size())
            break;
        stages.push_back(std::span(workload.layers).subspan(begin, count));
        begin += count;
    }
    if (begin != workload.layers.size() || stages.size() != layersPerStage.size()) {
        std::int64_t sum = 0;
        for (const int count : layersPerStage)
            sum += count;
        throw Error("layers_per_stage",
                    fmt::format("the stages hold {} layers but the model has {}", sum, workload.layers.size()),
                    "embedding and head count as one layer each");
    }
    return stages;
}

namespace {

int stageOfLayer(const std::vector<std::span<const Layer>>& stages, const std::string& name)
{
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        for (const Layer& layer : stages[stage])
            if (layer.name == name)
                return static_cast<int>(stage);
    return -1;
}

void fillAutogradBytes(const Workload& workload, std::span<const Layer> layers, Recompute recompute, StageCosts& stage)
{
    const std::size_t begin = layers.data() - workload.layers.data();
    const AutogradStage held = autogradStage(workload.layers, begin, layers.size(), recompute);
    stage.savedUntilInputGrad = held.untilInputGrad;
    stage.savedUntilWeightGrad = held.untilWeightGrad;
    stage.savedFromInputGrad = stage.sparedByBackward = held.fromInputGrad;
    stage.workspaceForward = held.workspaceForward;
    stage.workspaceInputGrad = held.workspaceInputGrad;
    stage.workspaceWeightGrad = held.workspaceWeightGrad;
    stage.workspaceBackward = held.workspaceBackward;
}

Recompute recomputeOf(const MemoryChoices& choices, std::size_t stage)
{
    return stage < choices.recompute.size() ? choices.recompute[stage] : Recompute::None;
}

void fillBytes(const Workload& workload, std::span<const Layer> layers, Recompute recompute, const Zero& zero,
               StageCosts& stage)
{
    const PassMemory of = passMemory(workload.shape, layers, recompute);
    stage.savedUntilInputGrad = of.kept.untilInputGrad;
    stage.savedUntilWeightGrad = of.kept.untilWeightGrad;
    stage.savedFromInputGrad = stage.sparedByBackward = of.kept.fromInputGrad;
    stage.recomputedUntilInputGrad = of.kept.againUntilInputGrad;
    stage.recomputedUntilWeightGrad = of.kept.againUntilWeightGrad;
    const auto attentions =
        std::count_if(layers.begin(), layers.end(), [](const Layer& layer) { return hasAttention(layer.kind); });
    // Sums over pieces, hence in fp32 whatever is stored.
    stage.sequenceGradient = attentions * sequenceGradientElements(workload.shape) * bytesOf(DataType::Fp32);
    stage.output = layers.back().outputBytes;
    stage.workspaceForward = of.workspace.forward;
    stage.workspaceInputGrad = of.workspace.inputGrad;
    stage.workspaceWeightGrad = of.workspace.weightGrad;
    stage.workspaceBackward = of.workspace.backward;
    stage.workspaceRecompute = of.workspace.recompute;
    if (workload.shape.autograd && !recompute.byBlock()) // of a table, which is not recomputed selectively
        fillAutogradBytes(workload, layers, recompute, stage);
    const std::int64_t trained = trainedParametersOf(layers), all = parametersOf(layers);
    const NarrowParameters narrow = narrowParametersOf(workload.shape, layers);
    stage.parameters = parameterBytes(workload.shape, all, narrow.all, workload.state.parameter);
    stage.gradients = trained * workload.state.gradient;
    const std::int64_t updated = updatedParametersOf(workload.shape.parallel, zero, layers);
    stage.optimizerState = updated * workload.state.optimizer;
    stage.gatheredParameters = stage.wholeGradients = 0;
    if (zero.sharesGradients() && updated < trained) {
        stage.wholeGradients = stage.gradients;
        stage.gradients = updated * workload.state.gradient;
    }
    const Parallelism& parallel = workload.shape.parallel;
    if (const std::int64_t own = sharedOut(parallel, zero, all, expertParametersOf(layers));
        zero.sharesParameters() && own < all) {
        stage.gatheredParameters =
            parameterBytes(workload.shape, all, narrow.all, gatheredBytes(workload.state, workload.shape.dataType));
        stage.parameters = parameterBytes(workload.shape, own, sharedOut(parallel, zero, narrow.all, narrow.experts),
                                          workload.state.parameter);
    }
    stage.framework = heldByFramework(workload.shape, layers);
    stage.narrowWeights = narrowWeightsOf(workload.shape, layers, stage.gatheredParameters > 0);
}

/// `attention`: the attention of a layer of the model. `heldElsewhere`: how many parameters another stage of the device
/// has, which updates them.
void fillTimes(std::span<const Layer> layers, const Layer& attention, OperationTimes& times, const MemberTimes& members,
               std::int64_t heldElsewhere, const Workload& workload, Recompute recompute, const Zero& zero,
               StageCosts& stage)
{
    const StateBytesPerParameter& state = workload.state;
    using Seconds = MemberTimes::Seconds;
    constexpr double Seconds::*passes[] = {&Seconds::forward, &Seconds::inputGrad, &Seconds::weightGrad};
    Seconds work, exchanged;
    for (const Layer& layer : layers) {
        const Seconds computing = times.of(layer).seconds, exchanges = members.exchanges(layer);
        for (const auto pass : passes) {
            work.*pass += computing.*pass;
            exchanged.*pass += exchanges.*pass;
        }
    }
    const double backwardWork = work.inputGrad + work.weightGrad;
    Seconds exposed; // of each second of exchanges
    for (const auto pass : passes) {
        const double remains = members.exposed(exchanged.*pass, work.*pass);
        work.*pass += remains;
        exposed.*pass = exchanged.*pass > 0 ? remains / exchanged.*pass : 0;
    }
    stage.forward = toNanoseconds(work.forward);
    stage.inputGrad = toNanoseconds(work.inputGrad);
    stage.weightGrad = toNanoseconds(work.weightGrad);
    Nanoseconds tableBackward = 0;
    for (const Layer& layer : layers) { // of a table
        stage.forward += layer.forwardTime;
        stage.inputGrad += layer.inputGradTime;
        stage.weightGrad += layer.weightGradTime;
        tableBackward += layer.backwardTime;
    }
    stage.fillInTimes();
    if (tableBackward > 0)
        stage.backward = tableBackward;
    std::vector<LayerSeconds> seconds;
    double again = 0;
    Nanoseconds tableAgain = 0;
    for (const Layer& layer : layers) {
        LayerSeconds& each = seconds.emplace_back();
        const Seconds toExperts = members.exchanges(layer, GroupAxis::Expert), exchanges = members.exchanges(layer);
        const bool sends = toExperts.forward > 0;
        const Seconds ofAttention = sends ? times.of(attention).seconds : Seconds{};
        const ComputedLayer& computed = times.of(layer);
        for (const auto pass : passes) {
            each.tokens.*pass = toExperts.*pass * exposed.*pass;
            each.attention.*pass = ofAttention.*pass;
            each.rest.*pass =
                computed.seconds.*pass + exchanges.*pass * exposed.*pass - each.tokens.*pass - each.attention.*pass;
        }
        each.coreAgain = computed.attentionCore;
        each.again = recompute.insideBackward() && isCheckpointed(layer.kind) ? recompute : Recompute::None;
        if (recompute.coresOnly())
            again += each.coreAgain;
        else if (each.again != Recompute::None) {
            again += each.attention.forward + each.tokens.forward + each.rest.forward;
            tableAgain += layer.forwardTime;
        }
    }
    if (recompute.coresOnly() || recompute.insideBackward())
        stage.recompute = toNanoseconds(again) + tableAgain;
    if (recompute.insideBackward())
        stage.lengthenBackward(stage.recompute);
    setExpertParts(seconds, stage);
    if (!recompute.coresOnly() && !recompute.insideBackward())
        stage.parts[indexOf(Op::R)] = stage.parts[indexOf(Op::F)];
    const std::int64_t trained = trainedParametersOf(layers);
    const std::int64_t narrow = narrowParametersOf(workload.shape, layers).all;
    // Of fp32 parameters too, whose gathered copies are narrower.
    const Bytes updated = parameterBytes(workload.shape, trained, narrow, state.parameter);
    const double own = trained > 0 ? static_cast<double>(trained - heldElsewhere) / static_cast<double>(trained) : 1;
    // A device that keeps a share of the state updates that share of the parameters.
    const double share = trained > 0 ? static_cast<double>(updatedParametersOf(members.parallel(), zero, layers))
                                           / static_cast<double>(trained)
                                     : 1;
    double touched = own
                     * (share * static_cast<double>(2 * updated + stage.allGradients())
                        + 2 * static_cast<double>(stage.optimizerState));
    if (times.device().rates) // frameworks clear all gradients, and clip those that they update: a norm and a factor
        touched += own * (1 + 3 * share) * static_cast<double>(stage.allGradients());
    if (narrow > 0) // the other copy is made of the one that was updated
        touched += static_cast<double>(narrowCopies * bytesIn(workload.shape.products, narrow));
    else if (workload.shape.framework.narrowInputs) // the new weights are read, and written in the products' type
        for (const Layer& layer : layers)
            if (layer.narrowParameters > 0)
                touched += castBytes(layer.narrowParameters, state.parameter, workload.shape.products);
    const double memoryRate = times.memoryRate();
    stage.update = toNanoseconds(memoryRate > 0 ? touched / memoryRate : 0);
    // What --overlap-exchanges hides of the sum, the last backward hides, and of the new parameters the first forward.
    const double gradient = state.gradient,
                 parameter = stage.gatheredParameters > 0 ? gatheredBytes(state, workload.shape.dataType)
                             : zero.level > 0             ? state.parameter
                                                          : state.gradient,
                 ofNarrow = narrow > 0 && zero.level > 0 ? bytesOf32(workload.shape.products) / 32. : parameter;
    const double scattered = members.overCopies(Collective::ReduceScatter, layers, heldElsewhere, {gradient, gradient}),
                 gathered = members.overCopies(Collective::AllGather, layers, heldElsewhere, {parameter, ofNarrow});
    stage.reduceGradients =
        toNanoseconds(members.exposed(zero.level > 0 ? scattered : scattered + gathered, backwardWork));
    stage.gather = zero.level == 0           ? 0
                   : zero.sharesParameters() ? toNanoseconds(gathered)
                                             : toNanoseconds(members.exposed(gathered, work.forward));
}

const DeviceSpec& deviceOf(const Cluster& cluster, const std::vector<int>& deviceOfStage, std::size_t stage,
                           ProductType products)
{
    const int device = deviceOfStage[stage];
    if (device < 0 || device >= std::ssize(cluster.devices))
        throw Error(fmt::format("stage {}", stage),
                    fmt::format("is placed on device {} of a cluster with {} devices", device, cluster.devices.size()),
                    "place it on an existing device");
    const DeviceSpec& spec = cluster.devices[device];
    if (!(spec.peakFlops > 0) || !(spec.efficiency > 0))
        throw Error(fmt::format("device {}", device), "no rate is known, so no time can be computed",
                    "set peak_flops and efficiency");
    if (products != ProductType::Own && spec.group)
        throw Error("model.products",
                    fmt::format("groups of devices of their own share out no products in {}", nameOf(products)),
                    "use --precision bf16, or --tensor-parallel instead of a group");
    if (!(spec.peakOf(products) > 0))
        throw Error(fmt::format("device {}", device),
                    fmt::format("{} has no products in {}, or their rate is not known", spec.name, nameOf(products)),
                    fmt::format("use --precision bf16, or set peak_{}_flops", nameOf(products)));
    return spec;
}

/// Error places inside the group get the prefix of the device, since the user's file has the group in a device.
void shareOut(const Workload& workload, int first, int count, const DeviceSpec& group, int device,
              const sharding::StatedPlan& plan, sharding::SharedStages& known, StageCosts& stage)
{
    try {
        applyGroupCosts(known.plan(workload, first, count, group, plan), group, stage);
    } catch (const Error& error) {
        Diagnostics found = error.diagnostics();
        for (Diagnostic& diagnostic : found)
            if (diagnostic.where.starts_with("cluster."))
                diagnostic.where =
                    fmt::format("cluster.devices.{}.group{}", device, diagnostic.where.substr(sizeof("cluster") - 1));
        throw Error(std::move(found));
    }
}

std::string describeSource(const Cluster& cluster, const std::vector<int>& deviceOfStage, const Parallelism& parallel)
{
    const std::string groups = parallel == Parallelism{} ? "" : ", " + textOf(parallel);
    const auto describe = [](const DeviceSpec& device) {
        if (device.rates)
            return fmt::format("{} by the rates {}", device.name, device.rates->name);
        return fmt::format("{} at {:.0f} % of peak", device.name, device.efficiency * 100)
               + (device.halfRateWidth > 0 ? fmt::format(", half of that at width {:.0f}", device.halfRateWidth) : "");
    };
    const std::string first = describe(cluster.devices[deviceOfStage.front()]);
    for (const int device : deviceOfStage)
        if (describe(cluster.devices[device]) != first)
            return "formula: " + first + " and others" + groups;
    return "formula: " + first + groups;
}

} // namespace

std::vector<SharedParameter> sharedParametersOf(const Workload& workload, const std::vector<int>& layersPerStage,
                                                bool copied)
{
    const auto stages = layersOfStages(workload, layersPerStage);
    std::vector<SharedParameter> shared;
    for (const Layer& layer : workload.layers) {
        if (layer.sharedParameters == 0)
            continue;
        const int root = stageOfLayer(stages, layer.tiedTo);
        const int other = stageOfLayer(stages, layer.name);
        if (root < 0 || (copied && root == other))
            continue;
        // Where other parameters are of a narrower type, this one is not: no such product reads it.
        const Bytes values =
            workload.shape.narrowParameters ? layer.sharedParameters * workload.state.parameter : Bytes(0);
        shared.push_back({root, other, layer.sharedParameters * workload.state.gradient, copied, values});
    }
    return shared;
}

std::vector<SharedParameter> sharedParametersOn(const Cluster& cluster, const Workload& workload,
                                                const std::vector<int>& layersPerStage)
{
    const bool copied = std::any_of(cluster.devices.begin(), cluster.devices.end(),
                                    [](const DeviceSpec& device) { return device.group != nullptr || isCpu(device); });
    return sharedParametersOf(workload, layersPerStage, copied);
}

void applyBytes(const Workload& workload, const std::vector<int>& layersPerStage, const MemoryChoices& choices,
                Costs& costs)
{
    checkRecompute(workload.shape, choices.recompute);
    const auto stages = layersOfStages(workload, layersPerStage);
    costs.stages.resize(stages.size());
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        fillBytes(workload, stages[stage], recomputeOf(choices, stage), choices.zero, costs.stages[stage]);
}

std::vector<double> recomputedShares(const Workload& workload, const std::vector<int>& layersPerStage,
                                     Recompute recompute)
{
    std::vector<double> shares;
    for (const std::span<const Layer> layers : layersOfStages(workload, layersPerStage)) {
        double again = 0, all = 0;
        for (const Layer& layer : layers) {
            again += recomputedFlops(layer, recompute);
            all += layer.forwardFlops;
        }
        shares.push_back(all > 0 ? again / all : recompute.coresOnly() ? 0 : 1);
    }
    return shares;
}

void recomputeInGroup(Recompute recompute, double shareOfForward, StageCosts& costs)
{
    costs.recompute = std::llround(static_cast<double>(costs.forward) * shareOfForward);
    if (recompute.insideBackward())
        costs.lengthenBackward(costs.recompute);
}

Costs formulaCosts(const Workload& workload, const std::vector<int>& layersPerStage, const Cluster& cluster,
                   const std::vector<int>& deviceOfStage, Dataflow* dataflow, sharding::SharedStages* known,
                   const MemoryChoices& choices, const std::vector<sharding::StatedPlan>& plans)
{
    const auto stages = layersOfStages(workload, layersPerStage);
    if (stages.empty() || stages.size() != deviceOfStage.size())
        throw Error(
            "layers_per_stage",
            fmt::format("the model is cut into {} stages but {} are placed", stages.size(), deviceOfStage.size()),
            "give one number per stage");
    Costs costs;
    applyBytes(workload, layersPerStage, choices, costs);
    const Parallelism& parallel = workload.shape.parallel;
    const MemberTimes members(cluster, parallel);
    const std::vector<SharedParameter> shared = sharedParametersOn(cluster, workload, layersPerStage);
    std::vector<std::int64_t> heldElsewhere(stages.size());
    for (const SharedParameter& parameter : shared)
        if (!parameter.copied && workload.state.gradient > 0
            && deviceOfStage[parameter.otherStage] == deviceOfStage[parameter.rootStage])
            heldElsewhere[parameter.otherStage] += parameter.bytes / workload.state.gradient;
    sharding::SharedStages own;
    std::deque<OperationTimes> times; // of every kind of device
    const auto timesOn = [&](const DeviceSpec& device) -> OperationTimes& {
        for (OperationTimes& known : times)
            if (known.device() == device)
                return known;
        return times.emplace_back(device, typesOf(workload));
    };
    Layer attention;
    if (workload.shape.experts > 0)
        describeLayer(attentionGraph(memberShape(workload.shape)), 1, attention);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        const DeviceSpec& device = deviceOf(cluster, deviceOfStage, stage, workload.shape.products);
        const Recompute again = recomputeOf(choices, stage);
        if (device.group && !(parallel == Parallelism{}))
            throw Error(fmt::format("device {}", deviceOfStage[stage]),
                        "a cluster's own group of devices, and degrees of parallelism are given too: "
                            + textOf(parallel),
                        "use a cluster of single devices, or leave the degrees out");
        if (device.group && workload.shape.framework != FrameworkMemory{})
            throw Error(fmt::format("device {}", deviceOfStage[stage]),
                        "what frameworks keep besides is not known of a cluster's own groups of devices",
                        "use none, or degrees of parallelism on a cluster of single devices");
        if (!device.group)
            fillTimes(stages[stage], attention, timesOn(device), members, heldElsewhere[stage], workload, again,
                      choices.zero, costs.stages[stage]);
        else
            shareOut(workload, static_cast<int>(stages[stage].data() - workload.layers.data()), layersPerStage[stage],
                     device, deviceOfStage[stage], stage < plans.size() ? plans[stage] : sharding::StatedPlan{},
                     known ? *known : own, costs.stages[stage]);
        StageCosts& cost = costs.stages[stage];
        if (stage == 0 && workload.shape.autograd) { // autograd skips its input's gradient: autogradstage.h
            const Nanoseconds inside = again.insideBackward() ? cost.recompute : 0;
            cost.inputGrad = stages[0].front().inputGradTime + inside;
            cost.weightGrad = cost.backward - inside;
        }
        if (device.group && again != Recompute::None)
            recomputeInGroup(again, recomputedShares(workload, layersPerStage, again)[stage], cost);
    }

    takeClusterLinks(cluster, parallel, costs);
    for (const SharedParameter& parameter : shared) {
        const int from = deviceOfStage[parameter.otherStage], to = deviceOfStage[parameter.rootStage];
        // There and back again; on one device there is nothing to carry. On nodes every pair has its own time.
        if (from != to && !costs.nodeLinks.any())
            costs.reduce = std::max(costs.reduce, 2 * costs.linkBetween(from, to).transferTime(parameter.bytes));
    }
    if (dataflow)
        dataflow->shared = shared;
    if (workload.shape.architecture == Architecture::Table)
        costs.source = fmt::format("formula: the layers' times as they stand in {}", workload.shape.name);
    else
        costs.source = describeSource(cluster, deviceOfStage, parallel);
    return costs;
}

} // namespace pipewright
