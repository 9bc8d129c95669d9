// SPDX-License-Identifier: GPL-3.0-or-later
// Trains designs whose stages are held by groups, and compares the results with one device that has the whole model,
// with the plan, and with each other.
#pragma once

#include "core/design/redesign.h"
#include "core/program/compile.h"
#include "core/program/memberprogram.h"
#include "executor/host/hostbackend.h"
#include "executor/run/grouprun.h"
#include "executor/runtime/runtime.h"
#include "executor/sharding/drydevice.h"
#include "executor/sharding/grouptraining.h"
#include "executor/training/textdata.h"
#include "makers/groups.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <functional>

namespace pipewright::test {

using namespace sharding;

struct Run {
    std::vector<double> losses;
    WholeTensors parameters, gradients; ///< before and after the last step
    StepData data;                      ///< of the last step
    FollowedGroups followed;
    ReferenceStep reference;
    std::vector<Bytes> planned, peak; ///< bytes per member, then in the host's memory of those that offload
    std::vector<Bytes> persistent;    ///< per member
    Bytes state = 0;                  ///< of the optimizer, of all members
};

/// The norm of the difference / the norm of the reference.
inline double errorOf(const HostTensor& ours, const HostTensor& theirs)
{
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < theirs.elements(); ++i) {
        difference += std::pow(double(ours.data[i]) - double(theirs.data[i]), 2);
        size += std::pow(double(theirs.data[i]), 2);
    }
    return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

/// The start of a run instead of random parameters, and a change to its kept choices.
struct Planted {
    TrainingWork::Start start{};
    std::function<void(KeptChoices& choices, const Program& program)> choices{};
};

inline Run trained(const Design& design, int steps = 2, const Planted& planted = {})
{
    GroupStages stages = groupStages(design);
    measureMembers(stages, factsOf(design.workload->optimizer).values, design.schedule.recompute);
    const MemberProgram members = memberProgram(compile(design.schedule, design.costs, design.dataflow), stages,
                                                design.costs, design.schedule.transferOrder);
    const auto data = loadTrainingData("", design.workload->shape, 7, 4);
    OptimizerSettings optimizer;
    optimizer.kind = design.workload->optimizer;
    GroupTraining work(std::make_unique<DesignModel>(design, *data, 3, planted.start), stages, optimizer,
                       design.schedule.recompute);
    work.keepChoices();
    const auto backend = createHostBackend(stages.members());
    Runtime runtime(members.program, *backend, work, nullptr, {.checkMemory = true});
    Run run;
    for (int step = 0; step < steps; ++step) {
        run.parameters = work.parameters();
        run.losses.push_back(runtime.runStep(step).loss);
    }
    run.gradients = work.gradients();
    if (planted.choices)
        planted.choices(*work.choices(), members.program);
    run.followed = work.followed(fp32GradientBound);
    run.data = sampleStep(*data, design.workload->shape, steps - 1, design.schedule.microbatches);
    run.reference = referenceStep(design, run.parameters, run.data, &run.followed);
    for (const Program::Device& device : members.program.devices)
        run.planned.push_back(device.peakBytes);
    run.peak = runtime.peakBytes();
    for (const Program::Device& device : members.program.devices)
        run.persistent.push_back(device.persistentBytes);
    for (const Buffer& buffer : members.program.buffers)
        run.state += buffer.kind == BufferKind::OptimizerState ? buffer.bytes : 0;
    for (const Program::Device& device : members.program.devices)
        if (!design.schedule.offload.empty())
            run.planned.push_back(device.hostPeakBytes);
    if (!design.schedule.offload.empty())
        for (const Bytes bytes : runtime.hostPeakBytes())
            run.peak.push_back(bytes);
    return run;
}

/// Whether a parameter's gradient is rounding errors alone: a key's bias adds the same to all scores of a query, and a
/// sequence of one token has one score.
inline bool isRoundingAlone(const std::string& parameter, std::int64_t tokens)
{
    const bool ofScores =
        parameter.ends_with("key.weight") || parameter.ends_with("query.weight") || parameter.ends_with("query.bias");
    return parameter.ends_with("key.bias") || (tokens == 1 && ofScores);
}

inline void verify(const Run& run)
{
    QCOMPARE(run.gradients.size(), run.reference.gradients.size());
    double worst = 0;
    for (const auto& [name, gradient] : run.reference.gradients) {
        QVERIFY2(run.gradients.contains(name), name.c_str());
        if (isRoundingAlone(name, run.data.inputs.front().shape.back()))
            continue;
        const double error = errorOf(run.gradients.at(name), gradient);
        QVERIFY2(error < 2e-5, qPrintable(QString("%1 %2").arg(QString::fromStdString(name)).arg(error)));
        worst = std::max(worst, error);
    }
    QVERIFY(std::abs(run.losses.back() - run.reference.loss) < 1e-5 * run.reference.loss);
    QCOMPARE(run.peak, run.planned);
}

inline void verifyNarrow(const Run& run)
{
    const GradientCheck check = checkGroupGradients(run.gradients, run.reference, bf16GradientBound, DataType::Bf16);
    QVERIFY2(check.holds(), qPrintable(QString("%1 %2").arg(check.worst.c_str()).arg(check.maxRelativeError)));
    QVERIFY(std::abs(run.losses.back() - run.reference.loss) < 1e-3 * run.reference.loss);
    QCOMPARE(run.peak, run.planned);
}

/// Compares bit by bit: the losses, the parameters before the last step and the gradients after it.
inline void verifySame(const Run& ours, const Run& theirs)
{
    QCOMPARE(ours.losses, theirs.losses);
    for (const auto& [name, value] : theirs.parameters)
        QVERIFY2(ours.parameters.at(name).data == value.data, name.c_str());
    for (const auto& [name, gradient] : theirs.gradients)
        QVERIFY2(ours.gradients.at(name).data == gradient.data, name.c_str());
}

/// With a link to the host's memory of `bandwidth` bytes/s.
inline Design offloading(Design design, double bandwidth)
{
    design.costs.hostLink = LinkCosts{1000, bandwidth};
    return withOffload(design, std::vector<bool>(static_cast<std::size_t>(design.schedule.stages()), true));
}

/// Llama's features, for groups of two.
inline ModelShape groupLlama(int layers = 6)
{
    ModelShape shape = llamaShape(layers);
    shape.microbatchSize = 4;
    shape.vocabulary = 256;
    return shape;
}

/// Further features of today's models.
inline ModelShape groupGemma(int layers = 6)
{
    ModelShape shape = groupLlama(layers);
    shape.tiedHead = shape.queryKeyNorm = shape.postNorm = true;
    shape.activation = Activation::GeluTanh;
    shape.embeddingScale = 3;
    shape.attentionSoftCap = 2;
    shape.logitsSoftCap = 3;
    shape.queryScale = 5;
    shape.window = 4;
    shape.fullAttentionEvery = 2;
    shape.localRotaryBase = 50;
    return shape;
}

/// DeepSeek's latent attention; with or without a latent of the queries.
inline ModelShape groupLatent(int layers = 2, bool ofQueries = true)
{
    ModelShape shape = groupLlama(layers);
    shape.keyValueHeads = shape.heads;
    shape.headSize = 4;
    shape.rotaryHeadSize = 6;
    shape.valueHeadSize = 5;
    shape.queryLatent = ofQueries ? 8 : 0;
    shape.keyValueLatent = 7;
    shape.rotary = {.base = 100,
                    .scaling = Rotary::Scaling::Yarn,
                    .factor = 4,
                    .low = 1,
                    .high = 32,
                    .original = 16,
                    .attentionFactor = 1.1};
    return shape;
}

/// Linear biases in place of positions (ALiBi); slopes of six heads.
inline ModelShape groupBiases(int layers = 2)
{
    ModelShape shape = groupLlama(layers);
    shape.linearBiases = shape.embeddingNorm = true;
    shape.rotary = {};
    shape.heads = 6;
    shape.keyValueHeads = 3;
    return shape;
}

/// GPT-OSS: sinks, windows, and experts with biases and clamped gates.
inline ModelShape groupSinks(int layers = 2, bool experts = false)
{
    ModelShape shape = groupLlama(layers);
    shape.attentionSinks = shape.queryKeyValueBias = shape.projectionBias = true;
    shape.activation = Activation::ClampedSilu;
    shape.window = 4;
    shape.fullAttentionEvery = 2;
    if (experts) {
        shape.experts = 4;
        shape.expertsPerToken = 2;
        shape.expertFfn = 12;
        shape.expertBias = shape.routerBias = true;
    }
    return shape;
}

/// A token each, so that every expert has room for the tokens that choose it, as on single devices.
inline ModelShape groupRoomyExperts(bool normalised)
{
    ModelShape shape = groupExperts(2);
    shape.sequence = 1;
    shape.routerNormalised = normalised;
    shape.routerScale = 1.7;
    return shape;
}

/// DeepSeek's routers: sigmoids, some groups of the experts, and a correction that every step moves.
inline ModelShape groupSigmoids(bool normalised)
{
    ModelShape shape = groupRoomyExperts(normalised);
    shape.experts = 6;
    shape.routerScore = RouterScore::Sigmoid;
    shape.routerGroups = 3;
    shape.routerGroupsPerToken = 2;
    shape.routerBias = true;
    shape.routerBiasRate = 0.02;
    return shape;
}

/// Routers with a load-balancing term, which counts for more than the loss.
inline ModelShape groupBalanced(bool roomy)
{
    ModelShape shape = roomy ? groupRoomyExperts(true) : groupExperts(2);
    shape.routerBalance = 5;
    return shape;
}

/// An embedding model's attention, to later tokens too.
inline ModelShape groupBidirectional(int layers = 2)
{
    ModelShape shape = groupLlama(layers);
    shape.bidirectional = true;
    return shape;
}

/// BERT, with masked tokens or its pooler, and ViT.
inline ModelShape groupEncoder(int layers = 2, bool masked = true)
{
    ModelShape shape = encoderShape(layers, masked);
    shape.microbatchSize = 4;
    shape.vocabulary = 258; // bytes, and room for a mask
    return shape;
}
inline ModelShape groupVision(int layers = 2)
{
    ModelShape shape = visionShape(layers);
    shape.microbatchSize = 4;
    return shape;
}

/// By name; each has what the others have not.
inline const std::vector<std::pair<const char*, ModelShape>>& groupModels()
{
    static const std::vector<std::pair<const char*, ModelShape>> models{
        {"gpt", groupShape(2)},
        {"llama", groupLlama(2)},
        {"gemma", groupGemma(2)},
        {"experts", groupExperts(2)},
        {"mlp", groupMlp(2)},
        {"latent", groupLatent(2)},
        {"latent of keys", groupLatent(2, false)},
        {"sinks", groupSinks(2)},
        {"experts with biases", groupSinks(2, true)},
        {"linear biases", groupBiases(2)},
        {"to later tokens", groupBidirectional(2)},
        {"experts with room", groupRoomyExperts(true)},
        {"experts by probability", groupRoomyExperts(false)},
        {"balanced routers", groupBalanced(false)},
        {"balanced routers with room", groupBalanced(true)},
        {"routers by sigmoid", groupSigmoids(true)},
        {"routers by sigmoid alone", groupSigmoids(false)},
        {"encoder", groupEncoder(2)},
        {"pooler", groupEncoder(2, false)},
        {"pictures", groupVision(2)}};
    return models;
}

inline ModelShape groupModel(const QString& name)
{
    const auto& models = groupModels();
    return std::find_if(models.begin(), models.end(), [&](const auto& model) { return name == model.first; })->second;
}

/// Whether sequences may be cut into pieces.
inline bool mayBeCut(const ModelShape& shape)
{
    return shape.looksBack() && shape.sequence > 1;
}

/// Sequences that can be cut into four pieces, of which windows reach beyond one.
inline ModelShape inTwelve(ModelShape shape)
{
    shape.sequence = 12;
    return shape;
}

} // namespace pipewright::test
