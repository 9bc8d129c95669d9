// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/groupreference.h"

#include "core/sharding/modelgraph.h"
#include "core/sharding/sharedstage.h"
#include "core/workload/transformer.h"
#include "executor/host/hostbackend.h"
#include "executor/sharding/expertmaths.h"
#include "executor/sharding/onedevice.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::sharding {

namespace {

/// For a decoder a row of tokens per sequence; for a classifier a row of features, or the classes.
HostTensor asFloats(std::span<const std::int32_t> values, const ModelShape& shape)
{
    const auto each = static_cast<std::int64_t>(values.size()) / shape.microbatchSize;
    const bool isClass = shape.architecture == Architecture::Classifier && each == 1;
    HostTensor tensor(isClass ? Shape{shape.microbatchSize} : Shape{shape.microbatchSize, each});
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
    return 1.0f / static_cast<float>(shape.tokens() * microbatches);
}

Diagnostics whyGroupsDoNotTrain(const ModelShape& shape)
{
    Diagnostics why = pipewright::whyNotRunnable(shape);
    const auto need = [&why](bool holds, const char* field, const char* what, const char* hint) {
        if (!holds)
            why.push_back({Severity::Error, std::string("model.") + field, what, hint});
    };
    need(shape.architecture == Architecture::Decoder || shape.architecture == Architecture::Classifier, "architecture",
         "groups train decoders and classifiers", "use one of these");
    need(shape.experts == 0 || shape.activation == Activation::Silu, "activation", "groups train experts with silu",
         "\"activation\": \"silu\"");
    need(shape.activation != Activation::ClampedSilu, "activation", "groups do not train clamped gates",
         "\"activation\": \"silu\"");
    need(shape.experts == 0
             || (shape.routerScore == RouterScore::Softmax && shape.routerGroups == 1 && shape.routerScale == 1
                 && shape.routerNormalised),
         "router_score", "groups train routers whose chosen weights are a softmax and sum to 1", "use such a router");
    need(!shape.attentionSinks, "attention_sinks", "groups train without attention sinks", "switch it off");
    need(shape.keyValueLatent == 0 && shape.queryLatent == 0, "key_value_latent",
         "groups train without latent attention", "use 0");
    need(shape.routerBalance == 0, "router_balance", "groups train without a load-balancing term", "use 0");
    need(!shape.expertBias && !shape.routerBias, "expert_bias", "groups train experts without biases",
         "switch them off");
    need(shape.sequencePieces == 1, "sequence_pieces", "groups train whole sequences", "use 1");
    return why;
}

StepData sampleStep(const TrainingData& data, const ModelShape& shape, int step, int microbatches)
{
    StepData found;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(shape.inputs()));
    std::vector<std::int32_t> targets(static_cast<std::size_t>(shape.tokens()));
    for (int m = 0; m < microbatches; ++m) {
        data.sample(step, m, tokens, targets);
        found.tokens.push_back(asFloats(tokens, shape));
        found.targets.push_back(asFloats(targets, shape));
    }
    return found;
}

ReferenceStep referenceStep(const Design& design, const WholeTensors& parameters, const StepData& data,
                            const FollowedGroups* followed)
{
    const Workload& workload = *design.workload;
    const TensorGraph graph = transformerGraph(workload.shape, workload.state, 1, skipsOf(design));
    const auto host = createHostBackend(1);
    MemberDevice member(host->device(0));
    LeafValues leaves;
    for (const auto& [name, value] : parameters)
        leaves[graph.find(name)] = value;
    ReferenceStep result;
    const int microbatches = static_cast<int>(data.tokens.size());
    const float weight = lossWeight(workload.shape, microbatches);
    for (std::size_t m = 0; m < data.tokens.size(); ++m) {
        leaves[graph.find("tokens")] = data.tokens[m];
        leaves[graph.find("targets")] = data.targets[m];
        OneDevice device(member, graph, leaves, workload.shape.dataType == DataType::Bf16);
        if (followed)
            device.forwardWith([&, m](const Node& node) -> std::unique_ptr<kernels::Operations> {
                if (!routesTokens(node))
                    return nullptr;
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
