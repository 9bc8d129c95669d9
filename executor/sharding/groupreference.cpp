// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/groupreference.h"

#include "core/model/modelgraph.h"
#include "core/model/transformer.h"
#include "core/sharding/sharedstage.h"
#include "executor/host/hostbackend.h"
#include "executor/sharding/onedevice.h"
#include "executor/sharding/runnablegraph.h"
#include "executor/stage/kernelsettings.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::sharding {

namespace {

/// What the model's first operation reads, as numbers: tokens, or features, of every sequence; patches of pictures, as
/// values between -1 and 1.
HostTensor inputsOf(std::span<const std::int32_t> values, const ModelShape& shape)
{
    const std::int64_t each = static_cast<std::int64_t>(values.size()) / shape.microbatchSize;
    if (shape.architecture != Architecture::Vision) {
        HostTensor tensor(Shape{shape.microbatchSize, each});
        std::copy(values.begin(), values.end(), tensor.data.begin());
        return tensor;
    }
    HostTensor tensor(Shape{shape.microbatchSize, shape.sequence - 1, shape.patchElements});
    kernels::hostOperations().run(kernels::FromBytes{values, tensor.data});
    return tensor;
}

/// One class for each sequence, or for each of its tokens.
HostTensor targetsOf(std::span<const std::int32_t> values, const ModelShape& shape)
{
    const std::int64_t each = static_cast<std::int64_t>(values.size()) / shape.microbatchSize;
    HostTensor tensor(shape.targets() == shape.microbatchSize ? Shape{shape.microbatchSize}
                                                              : Shape{shape.microbatchSize, each});
    std::copy(values.begin(), values.end(), tensor.data.begin());
    return tensor;
}

/// The skip connections as connections between the transformer layers of the whole model.
std::vector<LayerSkip> skipsOf(const Design& design)
{
    std::vector<int> first; // transformer layers before a stage
    int before = 0;
    for (const int count : design.layersPerStage) {
        first.push_back(rangeOf(*design.workload, before, count).first);
        before += count;
    }
    std::vector<LayerSkip> skips;
    for (const SkipConnection& skip : design.dataflow.skips)
        skips.push_back(
            {first[static_cast<std::size_t>(skip.fromStage) + 1], first[static_cast<std::size_t>(skip.toStage)]});
    return skips;
}

} // namespace

float lossWeight(const ModelShape& shape, int microbatches)
{
    return 1.0f / static_cast<float>(shape.countedTargets() * microbatches);
}

Diagnostics whyGroupsDoNotTrain(const ModelShape& shape)
{
    Diagnostics why = pipewright::whyNotRunnable(shape);
    if (!why.empty())
        return why;
    // Further layers have the operations of these.
    for (const LayerRange& range : {LayerRange{0, 1, true, true}, LayerRange{shape.layers - 1, 1, false, false}})
        for (const Diagnostic& fault : whyNotRunnable(stageGraph(shape, {}, range), shape.sequencePieces)) {
            why.push_back({Severity::Error, "model", fmt::format("groups do not train {}: {}", fault.where, fault.what),
                           "leave it out of the model, or use single devices"});
        }
    return why;
}

StepData sampleStep(const TrainingData& data, const ModelShape& shape, int step, int microbatches)
{
    StepData found;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(shape.inputs()));
    std::vector<std::int32_t> targets(static_cast<std::size_t>(shape.targets()));
    for (int m = 0; m < microbatches; ++m) {
        data.sample(step, m, tokens, targets);
        found.inputs.push_back(inputsOf(tokens, shape));
        found.targets.push_back(targetsOf(targets, shape));
    }
    return found;
}

ReferenceStep referenceStep(const Design& design, const WholeTensors& parameters, const StepData& data,
                            const FollowedGroups* followed)
{
    const Workload& workload = *design.workload;
    const TensorGraph graph =
        stageGraph(workload.shape, workload.state, {0, workload.shape.layers, true, true}, skipsOf(design));
    const auto host = createHostBackend(1);
    MemberDevice member(host->device(0));
    LeafValues leaves;
    for (const auto& [name, value] : parameters)
        leaves[graph.find(name)] = value;
    ReferenceStep result;
    const int microbatches = static_cast<int>(data.inputs.size());
    const float weight = lossWeight(workload.shape, microbatches);
    const auto pieces = static_cast<std::size_t>(workload.shape.sequencePieces);
    for (std::size_t first = 0; first < data.inputs.size(); first += pieces) {
        leaves[graph.find(inputName)] = data.inputs[first];
        leaves[graph.find(targetName)] = data.targets[first];
        std::vector<LeafValues> later;
        for (std::size_t m = first + 1; m < first + pieces; ++m)
            later.push_back({{graph.find(inputName), data.inputs.at(m)}, {graph.find(targetName), data.targets.at(m)}});
        OneDevice device(member, graph, leaves, workload.shape.dataType == DataType::Bf16, later,
                         balanceOver(workload.shape, microbatches));
        if (followed)
            device.forwardWith([&, first](const Node& node, int piece) -> std::unique_ptr<kernels::Operations> {
                if (!routesTokens(node))
                    return nullptr;
                const std::size_t m = first + static_cast<std::size_t>(piece);
                const auto& choices = followed->choices.at(m);
                const auto kept = choices.find(node.name);
                return std::make_unique<FollowingChoices>(
                    kept == choices.end() ? std::span<const std::int32_t>() : std::span(kept->second),
                    followed->tolerance, fmt::format("{}, microbatch {}", node.name, m), result.routing);
            });
        device.step(weight);
        const SingleRun run = device.result();
        result.loss += run.loss * static_cast<double>(weight);
        for (const auto& [tensor, gradient] : run.gradients) {
            const auto [sum, isNew] = result.gradients.try_emplace(graph.node(tensor).name, gradient);
            if (!isNew)
                accumulate(sum->second, gradient);
        }
    }
    return result;
}

} // namespace pipewright::sharding
