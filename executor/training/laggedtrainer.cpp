// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the blocks in a topological order of the schedule's own graph. Gradients are summed where the schedule's devices
// sum them and in the same order, since the bits depend on it: each device has its own sum, and partialSums() says
// which sums move between devices.
#include "executor/training/laggedtrainer.h"

#include "core/base/diagnostic.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/weightinputs.h"
#include "core/schedule/weightplan.h"
#include "executor/training/tiedgradients.h"
#include "kernels/calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace pipewright {

class LaggedStep {
public:
    explicit LaggedStep(LaggedTrainer& trainer)
        : m_trainer(trainer), m_schedule(trainer.m_schedule), m_graph(m_schedule, trainer.m_skips, false, m_diagnostics)
    {
        if (!hasErrors(m_diagnostics))
            m_plan = planWeights(m_schedule, m_graph, false, m_diagnostics);
        if (hasErrors(m_diagnostics))
            throw Error(m_diagnostics);
        if (!m_plan.versioned())
            throw Error("schedule.order", "it has no update blocks", "compare it with the sequential run");
        for (const PartialSum& sum : partialSums(m_graph, m_plan, m_schedule)) {
            m_sumsInto[sum.to].push_back(sum.from);
            m_sent[sum.from];
        }
        addWeightInputs(m_graph, m_plan, m_schedule);
        for (BlockIndex i = 0; i < m_graph.blocks.size(); ++i)
            if (usesWeights(m_graph.blocks[i].op))
                ++m_readers[{m_graph.blocks[i].stage, m_plan.reads[i].version}];
    }

    void run()
    {
        const OrderRun order = runOrder(m_graph);
        if (!order.stuck.empty())
            throw Error(order.stuck);
        for (const BlockIndex i : order.sequence) {
            const Block& block = m_graph.blocks[i];
            switch (block.op) {
            case Op::F: forward(i, block); break;
            case Op::B:
            case Op::I:
            case Op::W: backward(i, block); break;
            case Op::U: update(i, block); break;
            case Op::R: break; // nothing to do: all activations are kept
            }
            if (usesWeights(block.op))
                release(block.stage, m_plan.reads[i].version);
        }
    }

private:
    using Stage = LaggedTrainer::Stage;
    using Floats = std::vector<float>;

    Stage& at(int stage) { return m_trainer.m_stages[static_cast<std::size_t>(stage)]; }
    Floats& sumOf(BlockIndex i)
    {
        const Block& block = m_graph.blocks[i];
        Floats& sum = m_sums[{block.stage, m_graph.deviceOfBlock[i]}];
        sum.resize(at(block.stage).maths.parameters().count());
        return sum;
    }

    StageMemory memory(Stage& stage, int microbatch)
    {
        LaggedTrainer::Microbatch& kept = stage.microbatches[static_cast<std::size_t>(microbatch)];
        StageMemory memory;
        memory.savedUntilInputGrad = kept.untilInputGrad;
        memory.savedUntilWeightGrad = kept.untilWeightGrad;
        memory.savedFromInputGrad = kept.fromInputGrad;
        memory.workspace = stage.workspace;
        return memory;
    }

    /// The version that a block reads. If the rule asks for prediction, the block that makes the prediction computes it
    /// once.
    std::span<const std::byte> weights(BlockIndex i)
    {
        const WeightRead& read = m_plan.reads[i];
        Stage& stage = at(m_graph.blocks[i].stage);
        const auto& [version, stored] = stage.versions[static_cast<std::size_t>(read.version)];
        if (read.steps == 0)
            return stage.maths.isBf16() ? std::span<const std::byte>(stored)
                                        : std::as_bytes(std::span(version.parameters));
        std::vector<std::byte>& made = m_predicted[read.madeBy];
        if (made.empty()) {
            Floats predicted(version.parameters.size());
            stage.optimizer.predict(kernels::hostOperations(), version.updates, read.steps, version.parameters,
                                    version.state, predicted);
            made.resize(static_cast<std::size_t>(stage.maths.parameterBytes()));
            stage.maths.store(kernels::hostOperations(), predicted, made);
        }
        return made;
    }

    void forward(BlockIndex i, const Block& block)
    {
        Stage& stage = at(block.stage);
        const auto m = static_cast<std::size_t>(block.microbatch);
        std::span<const std::byte> activation;
        if (block.stage > 0)
            activation = at(block.stage - 1).microbatches[m].output;
        std::vector<std::span<const std::byte>> skips;
        for (const SkipConnection& skip : m_trainer.m_skips)
            if (skip.toStage == block.stage)
                skips.emplace_back(at(skip.fromStage).microbatches[m].output);
        StageMemory kept = memory(stage, block.microbatch);
        std::optional<FollowingChoices> following;
        if (m_trainer.m_followed)
            kept.operations = &following.emplace(
                m_trainer.m_followed->of(block.stage, block.microbatch, int(m_trainer.m_losses.size())));
        stage.maths.forward(weights(i),
                            {m_trainer.m_tokens[m], activation, m_trainer.m_targets[m],
                             std::span(m_trainer.m_losses).subspan(m, 1), skips},
                            kept, stage.microbatches[m].output);
    }

    void backward(BlockIndex i, const Block& block)
    {
        Stage& stage = at(block.stage);
        const auto m = static_cast<std::size_t>(block.microbatch);
        Floats& sum = sumOf(i);
        if (const auto from = m_sumsInto.find(i); from != m_sumsInto.end())
            sum = std::exchange(m_sent[from->second.front()], {});
        if (makesInputGrad(block.op)) {
            std::span<const std::byte> outputGrad;
            if (block.stage + 1 < m_trainer.stages())
                outputGrad = at(block.stage + 1).microbatches[m].inputGrad;
            std::vector<std::span<const std::byte>> skips;
            for (const SkipConnection& skip : m_trainer.m_skips)
                if (skip.fromStage == block.stage)
                    skips.emplace_back(at(skip.toStage).microbatches[m].inputGrad);
            stage.maths.inputGrad(weights(i), memory(stage, block.microbatch), outputGrad,
                                  stage.microbatches[m].inputGrad, sum, skips);
        }
        if (makesWeightGrad(block.op))
            stage.maths.weightGrad(memory(stage, block.microbatch), sum);
        if (const auto sent = m_sent.find(i); sent != m_sent.end()) {
            sent->second = sum;
            std::fill(sum.begin(), sum.end(), 0.0f);
        }
    }

    void update(BlockIndex i, const Block& block)
    {
        Stage& stage = at(block.stage);
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
        sumTiedGradients(kernels::hostOperations(), stage.maths.parameters(), own);
        StageStart next = stage.versions.back().at;
        stage.optimizer.update(kernels::hostOperations(), next.updates + 1, next.parameters, own, next.state);
        ++next.updates;
        std::fill(own.begin(), own.end(), 0.0f);
        stage.add(std::move(next));
        const auto before = static_cast<std::int32_t>(stage.versions.size()) - 2;
        if (m_readers[{block.stage, before}] == 0)
            stage.versions[static_cast<std::size_t>(before)] = {};
    }

    /// Frees a version with its last reader, unless it is the newest.
    void release(int stage, std::int32_t version)
    {
        std::vector<LaggedTrainer::Version>& versions = at(stage).versions;
        if (--m_readers[{stage, version}] == 0 && static_cast<std::size_t>(version) + 1 < versions.size())
            versions[static_cast<std::size_t>(version)] = {};
    }

    LaggedTrainer& m_trainer;
    const Schedule& m_schedule;
    Diagnostics m_diagnostics;
    OrderGraph m_graph;
    WeightPlan m_plan;
    std::map<std::pair<int, int>, Floats> m_sums;             ///< by stage and device
    std::map<BlockIndex, std::vector<BlockIndex>> m_sumsInto; ///< whose sums a block or an update takes, in its order
    std::map<BlockIndex, Floats> m_sent;
    std::map<BlockIndex, std::vector<std::byte>> m_predicted;       ///< as stored, by the block that makes them
    std::map<std::pair<int, std::int32_t>, std::int64_t> m_readers; ///< still to come, by stage and version
};

LaggedTrainer::LaggedTrainer(const Workload& workload, const std::vector<int>& layersPerStage, const Schedule& schedule,
                             std::vector<SkipConnection> skips, int batch, const OptimizerSettings& optimizer,
                             const TrainingData& data)
    : m_schedule(schedule), m_skips(std::move(skips)), m_data(data),
      m_losses(static_cast<std::size_t>(schedule.microbatches))
{
    int first = 0;
    for (const int layers : layersPerStage) {
        StoredStage maths(workload, first, first + layers, batch);
        StageOptimizer stageOptimizer(maths.parameters(), optimizer);
        first += layers;
        const auto bytes = [&](BufferKind kind) {
            return std::vector<std::byte>(static_cast<std::size_t>(maths.bytes(kind)));
        };
        const std::vector<std::byte> activation(static_cast<std::size_t>(maths.activationBytes()));
        std::vector<Microbatch> microbatches(static_cast<std::size_t>(schedule.microbatches),
                                             {bytes(BufferKind::SavedUntilInputGrad),
                                              bytes(BufferKind::SavedUntilWeightGrad),
                                              bytes(BufferKind::SavedFromInputGrad), activation, activation});
        Bytes workspace = 0;
        for (const Op op : {Op::F, Op::I, Op::W})
            workspace = std::max(workspace, maths.workspace(op));
        m_stages.push_back({std::move(maths), std::move(stageOptimizer),
                            std::vector<std::byte>(static_cast<std::size_t>(workspace)), std::move(microbatches)});
    }
    m_tokens.assign(m_losses.size(), std::vector<std::int32_t>(static_cast<std::size_t>(workload.shape.inputs())));
    m_targets.assign(m_losses.size(), std::vector<std::int32_t>(static_cast<std::size_t>(workload.shape.targets())));
}

void LaggedTrainer::Stage::add(StageStart version)
{
    versions.push_back({std::move(version)});
    if (!maths.isBf16())
        return;
    versions.back().stored.resize(static_cast<std::size_t>(maths.parameterBytes()));
    maths.store(kernels::hostOperations(), versions.back().at.parameters, versions.back().stored);
}

void LaggedTrainer::step(int number, std::vector<StageStart> start)
{
    for (std::size_t m = 0; m < m_tokens.size(); ++m)
        m_data.sample(number, static_cast<int>(m), m_tokens[m], m_targets[m]);
    for (std::size_t s = 0; s < m_stages.size(); ++s) {
        if (s >= start.size() || start[s].parameters.size() != m_stages[s].maths.parameters().count()
            || start[s].state.size() != m_stages[s].optimizer.stateElements())
            throw Error("parameters", "are not of this model and its cut into stages");
        m_stages[s].versions.clear();
        m_stages[s].add(std::move(start[s]));
    }
    LaggedStep(*this).run();
}

std::span<const float> LaggedTrainer::parameters(int stage) const
{
    return m_stages[static_cast<std::size_t>(stage)].versions.back().at.parameters;
}

} // namespace pipewright
