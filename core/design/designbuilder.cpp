// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/designbuilder.h"

#include "core/base/diagnostic.h"
#include "core/cluster/devicename.h"
#include "core/design/clusterlinks.h"
#include "core/design/familywork.h"
#include "core/design/optionrules.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/families/workers.h"
#include "core/model/transformer.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipewright {

namespace {

void checkRequest(const DesignRequest& request)
{
    if (request.savedForWeightGrad && !request.saved)
        throw Error("--saved-for-weight-grad", "says what part of --saved stays, and --saved is missing",
                    "give --saved SIZE too");
    if (request.saved && request.savedForWeightGrad.value_or(0) > *request.saved)
        throw Error("--saved-for-weight-grad",
                    fmt::format("{} is more than what is saved, {}", exactSize(*request.savedForWeightGrad),
                                exactSize(*request.saved)),
                    "it is a part of --saved");
    const int passes = request.forward.has_value() + request.inputGrad.has_value() + request.weightGrad.has_value();
    if ((request.model || request.device || request.cluster) && passes != 0 && passes != 3)
        throw Error("--forward, --input-grad, --weight-grad",
                    fmt::format("{} given beside a formula, which would give the other{}",
                                passes == 1 ? "one is" : "two are", passes == 1 ? "s" : ""),
                    "give all three, or none and set --efficiency, or leave out --model, --device and --cluster");
    const bool modelOption = request.model || request.device || request.cluster || request.sequence
                             || request.microbatchSize || !request.layersPerStage.empty();
    if (request.overlapFactor && !(*request.overlapFactor > 0 && *request.overlapFactor <= 100))
        throw Error("--overlap-factor", fmt::format("{}", *request.overlapFactor),
                    "1: a pair takes as long as its blocks one after the other; 0.5: half of that");
    if (request.nodes.any() && !request.cluster && !request.costsFrom)
        throw Error("--nodes, --devices-per-node, --cards-per-node, --nodes-per-switch, --oversubscription",
                    "say how the devices of a cluster stand, and none is given",
                    "give one that is made of nodes, such as --cluster h100-nodes");
    if (request.efficiency && !(*request.efficiency > 0 && *request.efficiency <= 1))
        throw Error("--efficiency", fmt::format("{} is no share of the peak rate", *request.efficiency),
                    "above 0, and 1 at most");
    if (request.halfRateWidth && !(*request.halfRateWidth >= 0 && *request.halfRateWidth <= 1e6))
        throw Error("--half-rate-width", fmt::format("{} is no width of a matrix", *request.halfRateWidth),
                    "0: all widths are alike; 1400: a matrix so wide reaches half of the efficiency");
    if ((request.efficiency || request.halfRateWidth) && !request.model && !request.device && !request.cluster
        && !request.costsFrom)
        throw Error("--efficiency, --half-rate-width", "say what a model costs on a device, and neither is given",
                    "give --model PRESET, or --device or --cluster");
    if (request.parallel && !request.model && !request.device && !request.cluster && !request.costsFrom)
        throw Error("--tensor-parallel, --context-parallel, --expert-parallel, --data-parallel",
                    "are part of what a model costs on a machine, and none is given",
                    "give --model PRESET, or --device or --cluster");
    if (request.precision && !request.costsFrom && (request.saved || passes > 0 || !modelOption))
        throw Error("--precision",
                    "says what a model computes with, and this design's times or bytes are not those of a model",
                    "leave it out, or give --model, and neither times nor --saved");
    if (request.framework && request.saved)
        throw Error("--framework", "keeps more of a model than --saved says, and there is none",
                    "leave one of the two out");
    if (request.saved && modelOption)
        throw Error("--saved", "given bytes stand in for a model, and a model's option is given too",
                    "leave out --saved, or --model and what belongs to it");
}

/// Data parallel workers may hold all stages on a device.
int stagesPerDevice(const DesignRequest& request)
{
    switch (request.layout) {
    case WorkerLayout::Workers:
    case WorkerLayout::Sharded: return request.devices;
    case WorkerLayout::Single: return std::max(1, request.workers.value_or(1));
    case WorkerLayout::Pipeline:
    case WorkerLayout::Triangle: break;
    }
    return 1;
}

/// The number of stages before the schedule exists, as far as it is known.
int expectedStages(const DesignRequest& request)
{
    const Family* family = findFamily(request.family);
    if (family != nullptr && family->dataParallel) {
        return std::max(1, workersOf({request}, family->cyclic));
    }
    return request.devices / std::max(1, request.replicas)
           * std::max(1, request.chunks.value_or(family != nullptr ? family->defaultChunks : 1));
}

FamilyParameters familyParameters(const DesignRequest& request)
{
    FamilyParameters parameters{request};
    parameters.saved = request.saved.value_or(0);
    parameters.savedForWeightGrad = request.savedForWeightGrad.value_or(parameters.saved);
    const Family* family = findFamily(request.family);
    const int factor = !request.perChunk || request.devices <= 0 ? 1
                       : family != nullptr && family->dataParallel
                           ? stagesPerDevice(request)
                           : expectedStages(request) / std::max(1, request.devices / std::max(1, request.replicas));
    parameters.forward = request.forward.value_or(parameters.forward) * factor;
    parameters.inputGrad = request.inputGrad.value_or(parameters.inputGrad) * factor;
    parameters.weightGrad = request.weightGrad.value_or(parameters.weightGrad) * factor;
    parameters.transfer = request.transfer.value_or(parameters.transfer);
    return parameters;
}

Costs givenCosts(const DesignRequest& request, const Schedule& schedule)
{
    DeviceWorth worth;
    worth.forward = request.forward.value_or(worth.forward);
    worth.inputGrad = request.inputGrad.value_or(worth.inputGrad);
    worth.weightGrad = request.weightGrad.value_or(worth.weightGrad);
    worth.transfer = request.transfer.value_or(worth.transfer);
    worth.perChunk = request.perChunk;
    worth.saved = request.saved.value_or(0);
    worth.savedForWeightGrad = request.savedForWeightGrad.value_or(worth.saved);
    worth.pieces = schedule.sequencePieces;
    return uniformCosts(worth, schedule.stages(), schedule.chunks());
}

constexpr std::string_view builtIn = "built in"; ///< how the source of a model begins that nobody named

/// The built-in model grows to as many layers as there are stages; a preset is taken as it is.
Workload workloadOf(const DesignRequest& request, int stages, int pieces)
{
    const Family* family = findFamily(request.family);
    const bool updates = family != nullptr && family->updates;
    ModelShape shape; // byte-gpt
    std::string source = std::string(standInSource) + shape.name;
    if (request.model) {
        ModelFile model = loadModel(*request.model);
        shape = std::move(model.shape);
        source = std::move(model.source);
    } else {
        shape.layers = std::max(shape.layers, stages);
        shape.tiedHead = !updates; // two stages that are updated at different times cannot share a matrix
    }
    if (shape.architecture == Architecture::Table && (request.sequence || request.microbatchSize))
        throw Error("--sequence, --microbatch-size", "the layers of a table hold for the microbatch that they are of",
                    "leave them out, or measure the layers with another microbatch");
    if (shape.architecture == Architecture::Table && pieces > 1)
        throw Error("--pieces", "the layers of a table are of whole microbatches, which cannot be cut",
                    "use another family");
    if (request.sequence)
        shape.sequence = *request.sequence;
    if (request.microbatchSize)
        shape.microbatchSize = *request.microbatchSize;
    if (request.parallel)
        shape.parallel = *request.parallel;
    if (request.framework)
        shape.framework = *request.framework;
    if (request.precision)
        shape.setPrecision(*request.precision);
    if (shape.sequence % pieces != 0)
        throw Error("--pieces", fmt::format("{} tokens cannot be cut into {} equal pieces", shape.sequence, pieces),
                    "use a divisor of --sequence");
    shape.sequencePieces = pieces;
    return makeWorkload(shape, updates ? inModel(request.optimizer.value_or(family->usualOptimizer)) : Optimizer::AdamW,
                        source);
}

/// A device preset is replaced by the cluster preset made of this device, which has its links.
Cluster listedCluster(const DesignRequest& request, const ModelShape& shape)
{
    const PresetLibrary library;
    if (request.cluster && request.device)
        throw Error("--device", "a cluster names its devices, and --cluster is given too", "leave one of the two out");
    const std::int64_t members = shape.parallel.devicesPerStage();
    const auto hasRoom = [&](std::string_view name) {
        const std::optional<std::int64_t> has = library.capacity(name);
        return !has || request.devices * members <= *has;
    };
    if (request.cluster)
        return library.cluster(*request.cluster, request.devices, members);
    if (!request.device) // groups and copies go beyond a node
        return library.cluster((hasKnownPasses(shape) && shape.dataType == DataType::Fp32)
                                       || shape.architecture == Architecture::Table
                                   ? "host"
                               : members > 1 || !hasRoom("h200-node") ? "h200-nodes"
                                                                      : "h200-node",
                               request.devices, members);
    const DeviceSpec device = library.device(*request.device);
    std::string tooSmall;
    for (const Preset& preset : library.list(PresetKind::Cluster)) {
        if (library.cluster(preset.name).devices.front() != device)
            continue;
        if (hasRoom(preset.name))
            return library.cluster(preset.name, request.devices, members);
        tooSmall = preset.name;
    }
    if (!tooSmall.empty())
        return library.cluster(tooSmall, request.devices, members); // says how many it has
    if (!request.transfer)
        throw Error("--device", "no cluster preset has links for " + device.name,
                    "give --transfer T, or --cluster PRESET");
    Cluster cluster;
    cluster.name = device.name;
    cluster.devices.assign(request.devices, device);
    return cluster;
}

Cluster clusterOf(const DesignRequest& request, const ModelShape& shape)
{
    Cluster cluster = listedCluster(request, shape);
    cluster.nodes = withChange(cluster, request.nodes);
    for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
        DeviceSpec& device = cluster.devices[d];
        if (device.group && (request.efficiency || request.halfRateWidth))
            throw Error("--efficiency, --half-rate-width",
                        fmt::format("device {} is a group, whose members have rates of their own", d),
                        "set them in the cluster's file");
        device.efficiency = request.efficiency.value_or(device.efficiency);
        device.halfRateWidth = request.halfRateWidth.value_or(device.halfRateWidth);
        if (request.efficiency || request.halfRateWidth) // in place of what was measured, too
            device.rates = nullptr;
    }
    return cluster;
}

/// The partition that was asked for, embedding and head added to the ends when it counts only the rest.
std::vector<int> partitionOf(const DesignRequest& request, const Workload& workload, int stages)
{
    if (request.layersPerStage.empty())
        return evenPartition(workload, stages);
    std::vector<int> partition = request.layersPerStage;
    if (static_cast<int>(partition.size()) != stages)
        throw Error("--layers-per-stage", fmt::format("{} numbers for {} stages", partition.size(), stages),
                    "give one number per stage");
    const int sum = std::accumulate(partition.begin(), partition.end(), 0);
    const int all = static_cast<int>(workload.layers.size());
    if (sum == workload.shape.layers && sum != all) {
        ++partition.front();
        ++partition.back();
    } else if (sum != all) {
        throw Error(
            "--layers-per-stage", fmt::format("{} layers, the model has {}", sum, workload.shape.layers),
            fmt::format("the numbers add up to {}, or to {} with embedding and head", workload.shape.layers, all));
    }
    if (*std::min_element(partition.begin(), partition.end()) < 1)
        throw Error("--layers-per-stage", "a stage without a layer", "give every stage at least one");
    return partition;
}

std::string defaultName(const DesignRequest& request)
{
    return fmt::format("{}, {} devices, {} microbatches", request.family, request.devices, request.microbatches);
}

/// The formula's times where none were given.
void takeGivenTimes(const DesignRequest& request, const Costs& given, Design& design)
{
    Costs& costs = design.costs;
    for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
        StageCosts& cost = costs.stages[stage];
        const auto isGiven = [&cost](Op op) { cost.origin[indexOf(op)] = CostOrigin::Given; };
        if (request.forward) {
            cost.forward = cost.recompute = given.stages[stage].forward;
            isGiven(Op::F);
            isGiven(Op::R);
        }
        if (request.inputGrad) {
            cost.inputGrad = given.stages[stage].inputGrad;
            isGiven(Op::I);
        }
        if (request.weightGrad) {
            cost.weightGrad = given.stages[stage].weightGrad;
            isGiven(Op::W);
        }
        if (request.inputGrad || request.weightGrad) {
            cost.backward = cost.inputGrad + cost.weightGrad;
            if (request.inputGrad && request.weightGrad)
                isGiven(Op::B);
        }
        cost.fitParts();
    }
    if (request.transfer) {
        keepReduceTime(design.dataflow, design.schedule.deviceOfStage, costs);
        costs.setAllLinks(given.link);
    }
    if (request.forward || request.inputGrad || request.weightGrad || request.transfer)
        costs.source += ", times given";
}

/// A stated overlap factor replaces the computed length of pairs.
void takeOverlapFactor(const DesignRequest& request, Costs& costs)
{
    if (!request.overlapFactor)
        return;
    costs.overlapFactor = *request.overlapFactor;
    for (StageCosts& stage : costs.stages)
        stage.parts = {};
}

/// What stages will make again, as far as it changes what a family holds: limits in bytes are of what is really held,
/// and others count in whole microbatches.
std::vector<Recompute> heldWith(const DesignRequest& request, int stages)
{
    return request.memoryBudget.empty()
               ? std::vector<Recompute>{}
               : ofStages(request.recompute.value_or(RecomputeChoice{}), stages, "--recompute");
}

/// The bytes for a family that searches, where no formula gives times. They count only for a limit in bytes.
void takeGivenBytes(const DesignRequest& request, FamilyParameters& parameters)
{
    const int stages = expectedStages(request);
    if (request.memoryBudget.empty() || stages < 1 || stages > maxDevices)
        return;
    if (request.saved) {
        const int chunks = std::max<int>(1, stages / std::max<int>(1, static_cast<int>(request.memoryBudget.size())));
        parameters.stageSaved.assign(stages, {parameters.saved / chunks, parameters.savedForWeightGrad / chunks});
        return;
    }
    const Workload workload = workloadOf(request, stages, 1);
    Costs costs;
    applyBytes(workload, partitionOf(request, workload, stages), {heldWith(request, stages), request.zero}, costs);
    parameters.stageSaved = memoryOfStages(costs);
}

/// The times and bytes for families that search before the schedule exists: the mean stage of an even partition.
void takeFormulaTimes(const DesignRequest& request, FamilyParameters& parameters)
{
    const int stages = expectedStages(request);
    if (request.devices < 1 || stages > maxDevices)
        return; // makeSchedule() says what is wrong
    const Workload workload = workloadOf(request, stages, 1);
    std::vector<int> deviceOfStage;
    const int devices = std::max(1, request.devices / std::max(1, request.replicas)); // of one pipeline
    for (int stage = 0; stage < stages; ++stage)
        deviceOfStage.push_back(stage % devices);
    const bool given = static_cast<int>(request.layersPerStage.size()) == stages;
    const std::vector<int> partition = given ? partitionOf(request, workload, stages) : evenPartition(workload, stages);
    Costs costs = formulaCosts(workload, partition, clusterOf(request, workload.shape), deviceOfStage);
    if (const std::vector<Recompute> recompute = heldWith(request, stages); !recompute.empty())
        applyBytes(workload, partition, {recompute, request.zero}, costs);
    parameters.stageSaved = memoryOfStages(costs);
    const auto perDevice = [&](Nanoseconds StageCosts::*time) {
        Nanoseconds sum = 0;
        for (const StageCosts& stage : costs.stages)
            sum += stage.*time;
        return sum / devices;
    };
    if (!request.forward)
        parameters.forward = perDevice(&StageCosts::forward);
    if (!request.inputGrad)
        parameters.inputGrad = perDevice(&StageCosts::inputGrad);
    if (!request.weightGrad)
        parameters.weightGrad = perDevice(&StageCosts::weightGrad);
    if (!request.transfer)
        parameters.transfer = costs.slowestHop(devices).transferTime(costs.stages.front().output);
}

/// The costs of another schedule already fix model and machine; options that state them must agree.
void checkAgainst(const DesignRequest& request, const Design& from)
{
    const auto refuse = [](bool given, const char* option, const char* what) {
        if (given)
            throw Error(option, fmt::format("{} of --costs-from, and this is given too", what),
                        "leave one of the two out");
    };
    refuse(request.forward || request.inputGrad || request.weightGrad || request.transfer || request.perChunk,
           "--forward, --input-grad, --weight-grad, --transfer", "the times are those");
    refuse(request.saved.has_value(), "--saved", "the bytes are those");
    refuse(request.device || request.cluster, "--device, --cluster", "the machine is the one");
    refuse(request.efficiency || request.halfRateWidth, "--efficiency, --half-rate-width", "the times are those");
    refuse(request.nodes.any(), "--nodes and what belongs to them", "the machine is the one");
    refuse(request.parallel.has_value(), "--tensor-parallel and other degrees", "the degrees are those");
    if (!from.dataflow.skips.empty())
        throw Error("--costs-from", "its skip connections join stages, and another schedule has other stages",
                    "take the costs of a design without them");
    if (!from.workload) {
        refuse(request.model || request.sequence || request.microbatchSize || !request.layersPerStage.empty(),
               "--model, --sequence, --microbatch-size, --layers-per-stage", "there is no model in the design");
        return;
    }
    ModelShape wanted = request.model ? loadModel(*request.model).shape : from.workload->shape;
    if (request.sequence)
        wanted.sequence = *request.sequence;
    if (request.microbatchSize)
        wanted.microbatchSize = *request.microbatchSize;
    wanted.sequencePieces = from.workload->shape.sequencePieces;
    wanted.tiedHead = from.workload->shape.tiedHead;
    checkSameModel(makeWorkload(wanted, from.workload->optimizer, {}), from.workload);
}

Design withTheirCosts(const DesignRequest& request, const Design& from)
{
    checkAgainst(request, from);
    FamilyParameters parameters = familyParameters(request);
    const Design whole = withSequencePieces(from, 1);
    takeWork(parameters, whole.costs);
    const int stages = expectedStages(request);
    if (const Family* family = findFamily(request.family); family != nullptr && stages >= 1)
        takeMemory(parameters, *family, whole,
                   request.layersPerStage.empty() ? std::vector<int>{} : partitionOf(request, *from.workload, stages),
                   heldWith(request, stages));
    Schedule schedule = makeSchedule(request.family, parameters);
    Schedule choices = from.schedule;
    if (request.recompute)
        choices.recompute.clear();
    if (!request.keepOffload)
        choices.offload.clear();
    carryMemoryChoices(choices, schedule);
    std::vector<int> partition;
    if (!request.layersPerStage.empty())
        partition = partitionOf(request, *from.workload, schedule.stages());
    const Design base = withDevices(from, schedule.devices());
    const Zero zero = schedule.zero;
    Design design = withSchedule(base, std::move(schedule), std::move(partition), request.uneven);
    if (zero != from.schedule.zero)
        design = withZero(design, zero);
    if (request.framework)
        design = withFramework(design, *request.framework);
    if (request.precision)
        design = withPrecision(design, *request.precision);
    design.name = request.name.empty() ? defaultName(request) : request.name;
    takeOverlapFactor(request, design.costs);
    return design;
}

Design withoutRecompute(const DesignRequest& request)
{
    const bool byFormula = request.model || request.device || request.cluster;
    FamilyParameters parameters = familyParameters(request);
    if (byFormula)
        takeFormulaTimes(request, parameters);
    else
        takeGivenBytes(request, parameters);
    Design design;
    design.name = request.name.empty() ? defaultName(request) : request.name;
    design.schedule = makeSchedule(request.family, parameters);
    const Costs given = givenCosts(request, design.schedule);
    design.costs = given;
    if (!request.saved) {
        design.workload = workloadOf(request, design.schedule.stages(), design.schedule.sequencePieces);
        design.layersPerStage = partitionOf(request, *design.workload, design.schedule.stages());
    }
    if (byFormula) {
        design.cluster = clusterOf(request, design.workload->shape);
        design.costs =
            formulaCosts(*design.workload, design.layersPerStage, design.cluster, design.schedule.deviceOfStage,
                         &design.dataflow, nullptr, design.schedule.memoryChoices());
        takeGivenTimes(request, given, design);
        takeOverlapFactor(request, design.costs);
        return design;
    }
    takeOverlapFactor(request, design.costs);
    design.cluster.name = "given";
    design.cluster.devices.resize(design.schedule.devices(), DeviceSpec{.name = std::string(unknownDevice)});
    design.cluster.link.name = "given";
    design.cluster.link.latency = design.costs.link.latency;
    if (design.workload) {
        design.dataflow.shared = sharedParametersOn(design.cluster, *design.workload, design.layersPerStage);
        applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), design.costs);
    }
    return design;
}

} // namespace

Design makeDesign(const DesignRequest& request)
{
    checkRequest(request);
    refuseUnused(request);
    Design design = request.costsFrom ? withTheirCosts(request, *request.costsFrom) : withoutRecompute(request);
    if (request.reshard)
        design.schedule.zero.reshard = reshardOf(*request.reshard, design.schedule.stages(), "--reshard");
    refuseUnused(request, design.schedule);
    if (request.zero.level > 0)
        requireCopies(design, "--zero");
    const std::vector<Recompute> recompute =
        ofStages(request.recompute.value_or(RecomputeChoice{}), design.schedule.stages(), "--recompute");
    return recompute.empty() ? design : withRecompute(design, recompute);
}

bool hasStandInModel(const Design& design)
{
    return design.workload && design.workload->source.starts_with(builtIn);
}

} // namespace pipewright
