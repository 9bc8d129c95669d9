// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/designbuilder.h"

#include "core/base/diagnostic.h"
#include "core/workload/stagecosts.h"
#include "core/workload/transformer.h"

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
    const bool modelOption = request.model || request.device || request.cluster || request.sequence
                             || request.microbatchSize || !request.layersPerStage.empty();
    if (request.saved && modelOption)
        throw Error("--saved", "given bytes stand in for a model, and a model's option is given too",
                    "leave out --saved, or --model and what belongs to it");
}

FamilyParameters familyParameters(const DesignRequest& request)
{
    FamilyParameters parameters;
    parameters.devices = request.devices;
    parameters.microbatches = request.microbatches;
    parameters.chunks = request.chunks;
    parameters.group = request.group;
    parameters.memoryLimit = request.memoryLimit;
    // A family that searches works with one device's worth, which is what an unknown family gets too.
    const Family* family = findFamily(request.family);
    const int chunks = request.chunks.value_or(family != nullptr ? family->defaultChunks : 1);
    const int factor = request.perChunk ? std::max(1, chunks) : 1;
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
    return uniformCosts(worth, schedule.stages(), schedule.chunks());
}

Workload workloadOf(const DesignRequest& request, int stages)
{
    ModelShape shape; // byte-gpt
    shape.layers = std::max(shape.layers, stages);
    if (request.sequence)
        shape.sequence = *request.sequence;
    if (request.microbatchSize)
        shape.microbatchSize = *request.microbatchSize;
    return makeWorkload(shape, Optimizer::AdamW, "built in");
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
    if (sum == workload.shape.layers) {
        ++partition.front();
        ++partition.back();
    } else if (sum != all) {
        throw Error("--layers-per-stage", fmt::format("{} layers, the model has {}", sum, workload.shape.layers),
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

} // namespace

Design makeDesign(const DesignRequest& request)
{
    checkRequest(request);
    Design design;
    design.name = request.name.empty() ? defaultName(request) : request.name;
    design.schedule = makeSchedule(request.family, familyParameters(request));
    design.costs = givenCosts(request, design.schedule);
    design.cluster.name = "given";
    design.cluster.devices.resize(static_cast<std::size_t>(design.schedule.devices()), DeviceSpec{.name = "device"});
    design.cluster.link.name = "given";
    design.cluster.link.latency = design.costs.link.latency;
    if (request.saved)
        return design;

    design.workload = workloadOf(request, design.schedule.stages());
    design.layersPerStage = partitionOf(request, *design.workload, design.schedule.stages());
    design.dataflow.shared = sharedParametersOf(*design.workload, design.layersPerStage);
    applyBytes(*design.workload, design.layersPerStage, design.costs);
    return design;
}

} // namespace pipewright
