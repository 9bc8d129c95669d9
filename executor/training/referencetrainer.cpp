// SPDX-License-Identifier: GPL-3.0-or-later
// ReferenceTrainer has the stages and their passes; its Step goes through the blocks of a schedule and decides which
// weights each reads and where its gradients are summed. O(blocks) beside the maths.
#include "executor/training/referencetrainer.h"

#include "core/base/diagnostic.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/replicas.h"
#include "core/schedule/weightinputs.h"
#include "core/schedule/weightplan.h"
#include "kernels/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace pipewright {

class ReferenceTrainer::Step {
public:
    Step(ReferenceTrainer& trainer, const Schedule& schedule)
        : m_trainer(trainer), m_schedule(schedule), m_graph(m_schedule, trainer.m_skips, false, m_diagnostics)
    {
        if (!hasErrors(m_diagnostics))
            m_plan = planWeights(m_schedule, m_graph, false, m_diagnostics);
        if (hasErrors(m_diagnostics))
            throw Error(m_diagnostics);
        for (const PartialSum& sum : partialSums(m_graph, m_plan, m_schedule)) {
            m_sumsInto[sum.to].push_back(sum.from);
            m_sent[sum.from];
        }
        addWeightInputs(m_graph, m_plan, m_schedule);
        m_reads = m_plan.reads;
        m_reads.resize(m_graph.blocks.size()); // synchronous: all read version 0
        for (BlockIndex i = 0; i < m_graph.blocks.size(); ++i)
            if (usesWeights(m_graph.blocks[i].op))
                ++m_readers[{m_graph.blocks[i].stage, m_reads[i].version}];
    }

    void run()
    {
        const OrderRun order = runOrder(m_graph);
        if (!order.stuck.empty())
            throw Error(order.stuck);
        for (Stage& stage : m_trainer.m_stages)
            stage.sums.clear();
        for (const BlockIndex i : order.sequence) {
            const Block& block = m_graph.blocks[i];
            switch (block.op) {
            case Op::F: m_trainer.forward(block.stage, block.microbatch, weights(i)); break;
            case Op::B:
            case Op::I:
            case Op::W: backward(i, block); break;
            case Op::U: updateOwn(i, block.stage); break;
            case Op::R: break; // nothing to do: all activations are kept
            }
            if (usesWeights(block.op))
                release(block.stage, m_reads[i].version);
        }
        if (!m_plan.versioned())
            updateAll();
    }

private:
    using Floats = std::vector<float>;

    Stage& at(int stage) { return m_trainer.m_stages[stage]; }

    Floats& sumOf(int stage, int holder)
    {
        Floats& sum = at(stage).sums[holder];
        sum.resize(at(stage).maths.parameters().count());
        return sum;
    }
    Floats& sumOf(BlockIndex i)
    {
        const Block& block = m_graph.blocks[i];
        return sumOf(block.stage, m_plan.versioned() ? m_graph.deviceOfBlock[i] : block.replica);
    }

    /// The version that a block reads. If the rule asks for prediction, the block that makes the prediction computes it
    /// once.
    std::span<const std::byte> weights(BlockIndex i)
    {
        const WeightRead& read = m_reads[i];
        const Stage& stage = at(m_graph.blocks[i].stage);
        const Version& version = stage.versions[static_cast<std::size_t>(read.version)];
        if (read.steps == 0)
            return stage.weights(version);
        std::vector<std::byte>& made = m_predicted[read.madeBy];
        if (made.empty()) {
            Floats predicted(version.at.parameters.size());
            stage.optimizer.predict(kernels::hostOperations(), version.at.updates, read.steps, version.at.parameters,
                                    version.at.state, predicted);
            made.resize(static_cast<std::size_t>(stage.maths.parameterBytes()));
            stage.maths.store(kernels::hostOperations(), predicted, made);
        }
        return made;
    }

    void backward(BlockIndex i, const Block& block)
    {
        Floats& sum = sumOf(i);
        if (const auto from = m_sumsInto.find(i); from != m_sumsInto.end())
            sum = std::exchange(m_sent[from->second.front()], {});
        if (makesInputGrad(block.op))
            m_trainer.inputGrad(block.stage, block.microbatch, weights(i), sum);
        if (makesWeightGrad(block.op))
            at(block.stage).maths.weightGrad(at(block.stage).memory(block.microbatch), sum);
        if (const auto sent = m_sent.find(i); sent != m_sent.end()) {
            sent->second = sum;
            std::fill(sum.begin(), sum.end(), 0.0f);
        }
    }

    /// A U block.
    void updateOwn(BlockIndex i, int stage)
    {
        Floats& own = sumOf(i);
        if (const auto from = m_sumsInto.find(i); from != m_sumsInto.end()) {
            Floats all = std::exchange(m_sent[from->second.front()], {});
            for (std::size_t k = 1; k < from->second.size(); ++k)
                kernels::run(kernels::Add{all, m_sent[from->second[k]]});
            if (m_schedule.shardedStates)
                own = std::move(all);
            else
                kernels::run(kernels::Add{own, all});
        }
        sumTied(stage, own, stage, own);
        update(stage, own);
        std::fill(own.begin(), own.end(), 0.0f);
    }

    /// The end of a step without U blocks. Parameters that two stages share are summed within a replica first.
    void updateAll()
    {
        const int last = m_trainer.stages() - 1, replicas = m_schedule.replicas();
        const auto copy = [](const Floats& from, Floats& to) { kernels::run(kernels::copyOf<float>(from, to)); };
        for (int replica = 0; replica < replicas; ++replica)
            sumTied(0, sumOf(0, replica), last, sumOf(last, replica));
        for (int stage = 0; stage <= last; ++stage) {
            for (const ReplicaPair& pair : replicaPairs(replicas)) {
                kernels::run(kernels::Add{sumOf(stage, pair.root), sumOf(stage, pair.other)});
                copy(sumOf(stage, pair.root), sumOf(stage, pair.other));
            }
            update(stage, sumOf(stage, 0));
        }
    }

    /// Both gradients of a matrix that embedding and head share become their sum.
    void sumTied(int root, Floats& ofRoot, int other, Floats& ofOther)
    {
        const Parameter* const embedding = at(root).maths.parameters().embeddingMatrix();
        const Parameter* const head = at(other).maths.parameters().headMatrix();
        if (!embedding || !head)
            return;
        const std::span<float> sum = embedding->in(std::span(ofRoot)), share = head->in(std::span(ofOther));
        kernels::run(kernels::Add{sum, share});
        kernels::run(kernels::copyOf<float>(sum, share));
    }

    void update(int stage, const Floats& gradients)
    {
        Stage& of = at(stage);
        Version& newest = of.versions.back();
        const bool isRead = m_readers[{stage, static_cast<std::int32_t>(of.versions.size()) - 1}] > 0;
        StageStart next = isRead ? newest.at : std::exchange(newest, {}).at;
        of.optimizer.update(kernels::hostOperations(), ++next.updates, next.parameters, gradients, next.state);
        of.add(std::move(next));
    }

    /// Frees a version with its last reader, unless it is the newest.
    void release(int stage, std::int32_t version)
    {
        std::vector<Version>& versions = at(stage).versions;
        if (--m_readers[{stage, version}] == 0 && static_cast<std::size_t>(version) + 1 < versions.size())
            versions[static_cast<std::size_t>(version)] = {};
    }

    ReferenceTrainer& m_trainer;
    const Schedule& m_schedule;
    Diagnostics m_diagnostics;
    OrderGraph m_graph;
    WeightPlan m_plan;
    std::vector<WeightRead> m_reads;                          ///< per block
    std::map<BlockIndex, std::vector<BlockIndex>> m_sumsInto; ///< whose sums a block or an update takes, in its order
    std::map<BlockIndex, Floats> m_sent;
    std::map<BlockIndex, std::vector<std::byte>> m_predicted;       ///< as stored, by the block that makes them
    std::map<std::pair<int, std::int32_t>, std::int64_t> m_readers; ///< still to come, by stage and version
};

ReferenceTrainer::ReferenceTrainer(const Workload& workload, const std::vector<int>& layersPerStage, int microbatches,
                                   const OptimizerSettings& optimizer, const TrainingData& data, std::uint64_t seed,
                                   std::vector<SkipConnection> skips, int batch)
    : m_batch(batch > 0 ? batch : microbatches), m_sequencePieces(workload.shape.sequencePieces), m_data(data),
      m_skips(std::move(skips))
{
    if (microbatches < 1 || microbatches % m_sequencePieces != 0)
        throw Error("microbatches", "a step needs at least one microbatch, and all pieces of each sequence");
    if (std::accumulate(layersPerStage.begin(), layersPerStage.end(), 0) != int(workload.layers.size()))
        throw Error("layersPerStage",
                    fmt::format("the stages do not hold the model's {} layers", workload.layers.size()),
                    "embedding and head count as layers");
    int first = 0;
    for (const int layers : layersPerStage) {
        StoredStage maths(workload, first, first + layers, m_batch);
        StageOptimizer stageOptimizer(maths.parameters(), optimizer);
        Stage stage{std::move(maths), std::move(stageOptimizer)};
        first += layers;
        const auto bytes = [&stage](BufferKind kind) {
            return std::vector<std::byte>(static_cast<std::size_t>(stage.maths.bytes(kind)));
        };
        Bytes workspace = 0;
        for (const Op op : {Op::F, Op::I, Op::W})
            workspace = std::max(workspace, stage.maths.workspace(op));
        stage.workspace.resize(static_cast<std::size_t>(workspace));
        const std::vector<std::byte> activation(static_cast<std::size_t>(stage.maths.activationBytes()));
        stage.microbatches = ByMicrobatch<Microbatch>(
            microbatches, {bytes(BufferKind::SavedUntilInputGrad), bytes(BufferKind::SavedUntilWeightGrad),
                           bytes(BufferKind::SavedFromInputGrad), activation, activation});
        stage.sequenceGradients.assign(static_cast<std::size_t>(microbatches / m_sequencePieces),
                                       bytes(BufferKind::SequenceGradient));
        StageStart start{std::vector<float>(stage.maths.parameters().count()),
                         std::vector<float>(stage.optimizer.stateElements())};
        stage.maths.parameters().initialise(start.parameters, seed);
        stage.add(std::move(start));
        m_stages.push_back(std::move(stage));
    }
    for (Stage& stage : m_stages) // which no longer move
        for (const Microbatch& microbatch : stage.microbatches)
            stage.saved.push_back(reinterpret_cast<const float*>(microbatch.untilInputGrad.data()));
    m_tokens = ByMicrobatch<std::vector<std::int32_t>>(
        microbatches, std::vector<std::int32_t>(static_cast<std::size_t>(workload.shape.inputs())));
    m_targets = ByMicrobatch<std::vector<std::int32_t>>(
        microbatches, std::vector<std::int32_t>(static_cast<std::size_t>(workload.shape.targets())));
    m_losses = ByMicrobatch<float>(microbatches);
}

void ReferenceTrainer::Stage::add(StageStart version)
{
    Version& newest = versions.emplace_back(Version{std::move(version)});
    if (!maths.isBf16())
        return;
    newest.stored.resize(static_cast<std::size_t>(maths.parameterBytes()));
    maths.store(kernels::hostOperations(), newest.at.parameters, newest.stored);
}

std::span<const std::byte> ReferenceTrainer::Stage::weights(const Version& version) const
{
    return maths.isBf16() ? std::span<const std::byte>(version.stored)
                          : std::as_bytes(std::span(version.at.parameters));
}

StageMemory ReferenceTrainer::Stage::memory(int microbatch)
{
    const std::size_t number = static_cast<std::size_t>(microbatch), pieces = saved.size() / sequenceGradients.size();
    const std::size_t piece = number % pieces;
    Microbatch& kept = microbatches[microbatch];
    return {kept.untilInputGrad,
            kept.untilWeightGrad,
            kept.fromInputGrad,
            workspace,
            static_cast<int>(piece),
            std::span(saved).subspan(number - piece, piece),
            sequenceGradients[number / pieces]};
}

void ReferenceTrainer::startAt(int completedSteps, std::vector<StageStart> start)
{
    if (std::ssize(start) != stages())
        throw Error("parameters", "are not of this model's number of stages");
    for (int s = 0; s < stages(); ++s) {
        Stage& stage = m_stages[s];
        StageStart& from = start[static_cast<std::size_t>(s)];
        if (from.state.empty())
            from.state.resize(stage.optimizer.stateElements());
        if (from.parameters.size() != stage.maths.parameters().count()
            || from.state.size() != stage.optimizer.stateElements())
            throw Error("parameters", "are not of this model and its cut into stages");
        stage.versions.clear();
        stage.add(std::move(from));
    }
    m_step = completedSteps;
}

double ReferenceTrainer::step(const Schedule& schedule)
{
    if (schedule.stages() != stages() || schedule.microbatches != m_losses.size()
        || schedule.sequencePieces != m_sequencePieces)
        throw Error("schedule",
                    "it is of another number of stages, microbatches or pieces of a sequence than the model");
    Step ofSchedule(*this, schedule);
    draw();
    for (Stage& stage : m_stages)
        stage.versions.erase(stage.versions.begin(), stage.versions.end() - 1);
    ofSchedule.run();
    ++m_step;
    return loss();
}

Evaluation ReferenceTrainer::evaluate()
{
    draw();
    Stage& head = m_stages[stages() - 1];
    std::int64_t correct = 0, all = 0;
    for (const MicrobatchIndex m : m_targets.indices()) {
        for (int s = 0; s < stages(); ++s)
            forward(s, m, m_stages[s].weights(m_stages[s].versions.back()));
        correct += head.maths.correct(head.memory(m));
        for (const std::int32_t target : m_targets[m])
            all += target >= 0; // negative targets have no part in the loss
    }
    return {loss(), double(correct) / double(all)};
}

void ReferenceTrainer::draw()
{
    for (const MicrobatchIndex m : m_tokens.indices())
        m_data.sample(m_step, m, m_tokens[m], m_targets[m]);
}

void ReferenceTrainer::forward(int stage, int microbatch, std::span<const std::byte> weights)
{
    Stage& of = m_stages[stage];
    std::span<const std::byte> activation;
    if (stage > 0)
        activation = m_stages[stage - 1].microbatches[microbatch].output;
    std::vector<std::span<const std::byte>> skips;
    for (const SkipConnection& skip : m_skips)
        if (skip.toStage == stage)
            skips.emplace_back(m_stages[skip.fromStage].microbatches[microbatch].output);
    StageMemory memory = of.memory(microbatch);
    std::optional<FollowingChoices> following;
    if (m_followed)
        memory.operations = &following.emplace(m_followed->of(stage, microbatch, m_losses.size()));
    of.maths.forward(weights,
                     {m_tokens[microbatch], activation, m_targets[microbatch], {&m_losses[microbatch], 1}, skips},
                     memory, of.microbatches[microbatch].output);
}

void ReferenceTrainer::inputGrad(int stage, int microbatch, std::span<const std::byte> weights,
                                 std::span<float> gradients)
{
    Stage& of = m_stages[stage];
    std::span<const std::byte> outputGrad;
    if (stage + 1 < stages())
        outputGrad = m_stages[stage + 1].microbatches[microbatch].inputGrad;
    std::vector<std::span<const std::byte>> skips;
    for (const SkipConnection& skip : m_skips)
        if (skip.fromStage == stage)
            skips.emplace_back(m_stages[skip.toStage].microbatches[microbatch].inputGrad);
    of.maths.inputGrad(weights, of.memory(microbatch), outputGrad, of.microbatches[microbatch].inputGrad, gradients,
                       skips);
}

double ReferenceTrainer::loss() const
{
    const double sum = std::accumulate(m_losses.begin(), m_losses.end(), 0.0);
    return sum * m_batch / m_losses.size();
}

} // namespace pipewright
