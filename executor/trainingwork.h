// SPDX-License-Identifier: GPL-3.0-or-later
// Real training as the runtime's work: binds the buffers of a Program to the stage maths. Everything that a
// microbatch keeps lives in the Program's buffers; only text, gradients' zeroing and losses are held here.
// Sums are made in the order of each device's list and nowhere else, which is why every synchronous
// schedule gives the bits of the sequential reference for that order. Where the schedule has replicas, each
// has parameters, gradients and optimizer state of its own, and they stay the same bits.
#pragma once

#include "executor/maths.h"
#include "executor/training/optimizer.h"
#include "executor/training/stagemaths.h"
#include "executor/training/trainingdata.h"
#include "executor/training/versionedweights.h"

#include <functional>
#include <vector>

namespace pipewright {

class TrainingWork final : public StageWork {
public:
    /// Throws Error when the workload cannot be run or `layersPerStage` does not fit it. `data` must outlive this.
    /// `batch`: microbatches of an update, over which gradients are averaged; 0: all of them.
    TrainingWork(const Workload& workload, const std::vector<int>& layersPerStage, int microbatches,
                 const OptimizerSettings& optimizer, const TrainingData& data, std::uint64_t seed, int batch = 0);

    std::string name() const override { return "training"; }
    /// Also fills parameters, and zeroes gradients and optimizer state. Throws Error when the program's
    /// buffers have not the sizes of this model.
    void prepare(const Program& program, std::span<const Region> regions) override;
    void beginStep(int step) override;
    double endStep(int step) override;
    void compute(const TaskContext& context) override;
    void update(const TaskContext& context) override;
    Region sharedPart(const Task& reduce, const BufferView& gradients) override;
    void reduce(const TaskContext& context, Region own, Region theirs, bool both) override;

    /// Of a program with U blocks: what was really read.
    const VersionedWeights& versions() const { return m_versions; }
    /// Of the last step: the mean token loss of each microbatch, with the weights that its forwards read.
    std::vector<double> microbatchLosses() const;
    /// Where data comes from, in place of (step, microbatch) of the text: fills tokens and targets.
    using Feed =
        std::function<void(int step, int microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets)>;
    void setFeed(Feed feed) { m_feed = std::move(feed); }
    /// Told the mean token loss of a microbatch by the thread of the device with the head.
    void setListener(std::function<void(int microbatch, double loss)> listener) { m_listener = std::move(listener); }

    int stages() const { return static_cast<int>(m_stages.size()); }
    int replicas() const { return m_program->replicas; } ///< of the prepared program
    std::span<const float> parameters(int stage, int replica = 0) const { return copyOf(stage, replica).parameters; }
    std::span<const float> optimizerState(int stage) const { return copyOf(stage, 0).state; }
    /// Of the last step, after the reductions over shared parameters and replicas.
    std::span<const float> gradients(int stage, int replica = 0) const { return copyOf(stage, replica).gradients; }

private:
    struct Stage {
        StageMaths maths;
        StageOptimizer optimizer;
    };
    const Stage& at(int stage) const { return m_stages[static_cast<std::size_t>(stage)]; }
    /// Where a program has U blocks its devices hold copies of a stage, otherwise its replicas do.
    std::size_t copyIndex(int stage, int holder) const
    {
        return static_cast<std::size_t>(holder) * m_stages.size() + static_cast<std::size_t>(stage);
    }
    int holderOf(int replica, int device) const { return m_program->versioned() ? device : replica; }
    std::size_t savedIndex(int stage, int microbatch) const
    {
        return static_cast<std::size_t>(stage) * m_losses.size() + static_cast<std::size_t>(microbatch);
    }
    const StageCopy& copyOf(int stage, int replica) const
    {
        return m_copies[copyIndex(stage, holderOf(replica, m_program->deviceOfStage[static_cast<std::size_t>(stage)]))];
    }
    StageCopy& copyOf(const Task& task) { return m_copies[copyIndex(task.stage, holderOf(task.replica, task.device))]; }

    std::vector<Stage> m_stages;
    const Program* m_program = nullptr;
    int m_batch;
    VersionedWeights m_versions;
    Feed m_feed;
    std::function<void(int, double)> m_listener;
    std::vector<StageCopy> m_copies; ///< replica 0's stage 0, stage 1, …, replica 1's …
    int m_sequencePieces;
    std::vector<const float*> m_saved; ///< per stage and microbatch: where its SavedUntilInputGrad begins
    std::uint64_t m_seed;
    const TrainingData& m_data;
    std::vector<std::vector<std::int32_t>> m_tokens, m_targets; ///< per microbatch
    std::vector<float> m_losses;                                ///< per microbatch, its share
};

} // namespace pipewright
