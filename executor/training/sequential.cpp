// SPDX-License-Identifier: GPL-3.0-or-later
// Plain gradient accumulation: per step all forwards of all microbatches, then all backwards in the stated order, the
// sums over shared parameters and replicas, and the updates. O(layers x microbatches), with every microbatch's
// activations kept.
#include "executor/training/sequential.h"

#include "core/base/diagnostic.h"
#include "core/schedule/replicas.h"
#include "executor/training/tiedgradients.h"
#include "kernels/calls.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

namespace pipewright {
namespace {

std::vector<int> ascendingMicrobatches(int microbatches)
{
    std::vector<int> order(std::size_t(microbatches), 0);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

/// The number of replicas that the order is for.
std::size_t checkOrder(const std::vector<std::vector<int>>& order, int stages, int microbatches, const char* where)
{
    const std::size_t perReplica = std::size_t(stages), replicas = order.size() / perReplica;
    bool right = replicas > 0 && order.size() == replicas * perReplica;
    for (std::size_t stage = 0; right && stage < perReplica; ++stage) {
        std::vector<int> all;
        for (std::size_t i = stage; i < order.size(); i += perReplica)
            all.insert(all.end(), order[i].begin(), order[i].end());
        std::sort(all.begin(), all.end());
        right = all == ascendingMicrobatches(microbatches);
    }
    if (!right)
        throw Error(where, "the accumulation order does not name every microbatch once per stage",
                    "give each of the " + std::to_string(stages) + " stages its share of "
                        + std::to_string(microbatches) + " microbatches, replica by replica");
    return replicas;
}

void checkPieces(const std::vector<std::vector<int>>& order, int microbatches, int pieces)
{
    for (const std::vector<int>& share : order) {
        std::vector<int> next(std::size_t(microbatches / pieces), pieces - 1);
        for (const int m : share)
            if (m % pieces != next[std::size_t(m / pieces)]--)
                throw Error("inputGrad", "pieces of a sequence are not accumulated from the last to the first",
                            "put the backward of each piece behind that of the next one");
    }
}

} // namespace

AccumulationOrder AccumulationOrder::ascending(int stages, int microbatches, int sequencePieces)
{
    std::vector<int> sequences = ascendingMicrobatches(microbatches);
    for (int& m : sequences)
        m += sequencePieces - 1 - 2 * (m % sequencePieces);
    const std::vector<std::vector<int>> order(std::size_t(stages), sequences);
    return {order, order};
}

StageMemory SequentialTrainer::Stage::memory(int microbatch)
{
    const std::size_t number = std::size_t(microbatch), pieces = microbatches.size() / sequenceGradients.size();
    Microbatch& kept = microbatches[number];
    const std::size_t piece = number % pieces;
    return {kept.untilInputGrad,
            kept.untilWeightGrad,
            kept.fromInputGrad,
            workspace,
            int(piece),
            std::span(saved).subspan(number - piece, piece),
            sequenceGradients[number / pieces]};
}

void SequentialTrainer::Stage::storeWeights()
{
    if (maths.isBf16())
        maths.store(kernels::hostOperations(), parameters, stored);
}

SequentialTrainer::SequentialTrainer(const Workload& workload, const std::vector<int>& layersPerStage, int microbatches,
                                     const OptimizerSettings& optimizer, const TrainingData& data, std::uint64_t seed,
                                     std::vector<SkipConnection> skips)
    : m_microbatches(microbatches), m_sequencePieces(workload.shape.sequencePieces), m_data(&data),
      m_skips(std::move(skips))
{
    if (microbatches < 1 || microbatches % m_sequencePieces != 0)
        throw Error("microbatches", "a step needs at least one microbatch, and all pieces of each sequence");
    if (std::accumulate(layersPerStage.begin(), layersPerStage.end(), 0) != int(workload.layers.size()))
        throw Error("layersPerStage",
                    "the stages do not hold the model's " + std::to_string(workload.layers.size()) + " layers",
                    "embedding and head count as layers");
    int first = 0;
    for (const int layers : layersPerStage) {
        StoredStage maths(workload, first, first + layers, microbatches);
        StageOptimizer stageOptimizer(maths.parameters(), optimizer);
        Stage stage{std::move(maths), std::move(stageOptimizer), {}, {}, {}, {}, {}, {}, {}, {}};
        first += layers;
        const auto bytes = [&](BufferKind kind) {
            return std::vector<std::byte>(std::size_t(stage.maths.bytes(kind)));
        };
        stage.parameters.resize(stage.maths.parameters().count());
        stage.gradients.assign(1, std::vector<float>(stage.parameters.size()));
        stage.optimizerState.resize(stage.optimizer.stateElements());
        Bytes workspace = 0;
        for (const Op op : {Op::F, Op::I, Op::W})
            workspace = std::max(workspace, stage.maths.workspace(op));
        stage.workspace.resize(std::size_t(workspace));
        if (stage.maths.isBf16())
            stage.stored.resize(std::size_t(stage.maths.parameterBytes()));
        for (int microbatch = 0; microbatch < microbatches; ++microbatch)
            stage.microbatches.push_back({bytes(BufferKind::SavedUntilInputGrad),
                                          bytes(BufferKind::SavedUntilWeightGrad),
                                          bytes(BufferKind::SavedFromInputGrad),
                                          std::vector<std::byte>(std::size_t(stage.maths.activationBytes())),
                                          std::vector<std::byte>(std::size_t(stage.maths.activationBytes()))});
        for (const Microbatch& microbatch : stage.microbatches)
            stage.saved.push_back(reinterpret_cast<const float*>(microbatch.untilInputGrad.data()));
        stage.sequenceGradients.assign(std::size_t(microbatches / m_sequencePieces),
                                       bytes(BufferKind::SequenceGradient));
        stage.maths.parameters().initialise(stage.parameters, seed);
        stage.storeWeights();
        m_stages.push_back(std::move(stage));
    }
    m_tokens.assign(std::size_t(microbatches), std::vector<std::int32_t>(std::size_t(workload.shape.inputs())));
    m_targets.assign(std::size_t(microbatches), std::vector<std::int32_t>(std::size_t(workload.shape.targets())));
}

void SequentialTrainer::startAt(int completedSteps, const std::vector<std::vector<float>>& parameters)
{
    bool right = parameters.size() == m_stages.size();
    for (std::size_t s = 0; right && s < m_stages.size(); ++s)
        right = parameters[s].size() == m_stages[s].parameters.size();
    if (!right)
        throw Error("parameters", "are not of this model and its cut into stages");
    m_step = completedSteps;
    for (std::size_t s = 0; s < m_stages.size(); ++s) {
        Stage& stage = m_stages[s];
        kernels::run(kernels::copyOf<float>(parameters[s], stage.parameters));
        stage.storeWeights();
    }
}

double SequentialTrainer::step(const AccumulationOrder& order)
{
    const std::size_t replicas = checkOrder(order.inputGrad, stages(), m_microbatches, "inputGrad");
    if (checkOrder(order.weightGrad, stages(), m_microbatches, "weightGrad") != replicas)
        throw Error("weightGrad", "the accumulation order is of another number of replicas than that of inputGrad");
    checkPieces(order.inputGrad, m_microbatches, m_sequencePieces);
    for (Stage& stage : m_stages)
        stage.gradients.assign(replicas, std::vector<float>(stage.parameters.size()));
    draw();
    const double loss = forward();
    backward(order);
    // A parameter that two stages share, or embedding and head of one stage, is summed within a replica first, as in
    // the Program.
    for (std::size_t replica = 0; replica < replicas; ++replica)
        if (m_stages.size() > 1)
            reduceTied(replica);
        else
            sumTiedGradients(kernels::hostOperations(), m_stages[0].maths.parameters(), m_stages[0].gradients[replica]);
    reduceReplicas();
    ++m_step;
    for (Stage& stage : m_stages) {
        stage.optimizer.update(kernels::hostOperations(), m_step, stage.parameters, stage.gradients[0],
                               stage.optimizerState);
        stage.storeWeights();
    }
    return loss;
}

Evaluation SequentialTrainer::evaluate()
{
    draw();
    Evaluation evaluation;
    evaluation.loss = forward();
    std::size_t correct = 0, all = 0;
    for (int m = 0; m < m_microbatches; ++m) {
        correct += std::size_t(m_stages.back().maths.correct(m_stages.back().memory(m)));
        for (const std::int32_t target : m_targets[std::size_t(m)])
            all += target >= 0; // negative targets have no part in the loss
    }
    evaluation.accuracy = double(correct) / double(all);
    return evaluation;
}

void SequentialTrainer::draw()
{
    for (int m = 0; m < m_microbatches; ++m)
        m_data->sample(m_step, m, m_tokens[std::size_t(m)], m_targets[std::size_t(m)]);
}

std::vector<std::span<const std::byte>> SequentialTrainer::skipInputs(std::size_t stage, std::size_t microbatch) const
{
    std::vector<std::span<const std::byte>> inputs;
    for (const SkipConnection& skip : m_skips)
        if (std::size_t(skip.toStage) == stage)
            inputs.emplace_back(m_stages[std::size_t(skip.fromStage)].microbatches[microbatch].output);
    return inputs;
}

std::vector<std::span<const std::byte>> SequentialTrainer::skipGrads(std::size_t stage, std::size_t microbatch) const
{
    std::vector<std::span<const std::byte>> grads;
    for (const SkipConnection& skip : m_skips)
        if (std::size_t(skip.fromStage) == stage)
            grads.emplace_back(m_stages[std::size_t(skip.toStage)].microbatches[microbatch].inputGrad);
    return grads;
}

double SequentialTrainer::forward()
{
    double loss = 0;
    for (std::size_t m = 0; m < std::size_t(m_microbatches); ++m) {
        std::span<const std::byte> activation;
        for (std::size_t s = 0; s < m_stages.size(); ++s) {
            Stage& stage = m_stages[s];
            std::vector<std::byte>& output = stage.microbatches[m].output;
            float share = 0;
            const auto skips = skipInputs(s, m);
            StageMemory memory = stage.memory(int(m));
            std::optional<FollowingChoices> following;
            if (m_followed)
                memory.operations = &following.emplace(m_followed->of(int(s), int(m), m_microbatches));
            stage.maths.forward(stage.weights(), {m_tokens[m], activation, m_targets[m], {&share, 1}, skips}, memory,
                                output);
            loss += share;
            activation = output;
        }
    }
    return loss;
}

void SequentialTrainer::backward(const AccumulationOrder& order)
{
    for (std::size_t s = m_stages.size(); s-- > 0;) {
        Stage& stage = m_stages[s];
        for (std::size_t replica = 0; replica < stage.gradients.size(); ++replica) {
            const std::size_t share = replica * m_stages.size() + s;
            std::vector<float>& gradients = stage.gradients[replica];
            for (const int m : order.inputGrad[share]) {
                std::span<const std::byte> outputGrad;
                if (s + 1 < m_stages.size())
                    outputGrad = m_stages[s + 1].microbatches[std::size_t(m)].inputGrad;
                stage.maths.inputGrad(stage.weights(), stage.memory(m), outputGrad,
                                      stage.microbatches[std::size_t(m)].inputGrad, gradients,
                                      skipGrads(s, std::size_t(m)));
            }
            for (const int m : order.weightGrad[share])
                stage.maths.weightGrad(stage.memory(m), gradients);
        }
    }
}

void SequentialTrainer::reduceTied(std::size_t replica)
{
    Stage& root = m_stages.front();
    Stage& other = m_stages.back();
    if (!other.maths.parameters().headMatrix())
        return; // a head of its own
    const std::span<float> sum = root.maths.parameters().embeddingMatrix()->in(std::span(root.gradients[replica]));
    const std::span<float> share = other.maths.parameters().headMatrix()->in(std::span(other.gradients[replica]));
    kernels::run(kernels::Add{sum, share});
    kernels::run(kernels::copyOf<float>(sum, share));
}

void SequentialTrainer::reduceReplicas()
{
    for (const ReplicaPair& pair : replicaPairs(static_cast<int>(m_stages.front().gradients.size())))
        for (Stage& stage : m_stages) {
            const std::span<float> root = stage.gradients[static_cast<std::size_t>(pair.root)];
            const std::span<float> other = stage.gradients[static_cast<std::size_t>(pair.other)];
            kernels::run(kernels::Add{root, other});
            kernels::run(kernels::copyOf<float>(root, other));
        }
    for (const ReplicaCopy& copy : replicaCopies(static_cast<int>(m_stages.front().gradients.size())))
        for (Stage& stage : m_stages)
            kernels::run(
                kernels::copyOf<float>(std::span<const float>(stage.gradients[static_cast<std::size_t>(copy.from)]),
                                       std::span<float>(stage.gradients[static_cast<std::size_t>(copy.to)])));
}

} // namespace pipewright
