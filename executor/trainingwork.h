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
#include "executor/training/textdata.h"

#include <vector>

namespace pipewright {

class TrainingWork final : public StageWork {
public:
    /// Throws Error when the workload cannot be run or `layersPerStage` does not fit it. `data` must outlive this.
    TrainingWork(const Workload& workload, const std::vector<int>& layersPerStage, int microbatches,
                 const OptimizerSettings& optimizer, const TextData& data, std::uint64_t seed);

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

    int stages() const { return static_cast<int>(m_stages.size()); }
    int replicas() const { return static_cast<int>(m_copies.size() / m_stages.size()); } ///< of the prepared program
    std::span<const float> parameters(int stage, int replica = 0) const { return copyOf(stage, replica).parameters; }
    /// Of the last step, after the reductions over shared parameters and replicas.
    std::span<const float> gradients(int stage, int replica = 0) const { return copyOf(stage, replica).gradients; }

private:
    struct Stage {
        StageMaths maths;
        StageOptimizer optimizer;
    };
    struct Copy { ///< what a replica holds of a stage
        std::span<float> parameters, gradients, state;
    };
    const Stage& at(int stage) const { return m_stages[static_cast<std::size_t>(stage)]; }
    std::size_t copyIndex(int stage, int replica) const
    {
        return static_cast<std::size_t>(replica) * m_stages.size() + static_cast<std::size_t>(stage);
    }
    std::size_t savedIndex(int stage, int microbatch) const
    {
        return static_cast<std::size_t>(stage) * m_losses.size() + static_cast<std::size_t>(microbatch);
    }
    const Copy& copyOf(int stage, int replica) const { return m_copies[copyIndex(stage, replica)]; }

    std::vector<Stage> m_stages;
    std::vector<Copy> m_copies; ///< replica 0's stage 0, stage 1, …, replica 1's …
    int m_sequencePieces;
    std::vector<const float*> m_saved; ///< per stage and microbatch: where its SavedUntilInputGrad begins
    std::uint64_t m_seed;
    const TextData& m_data;
    std::vector<std::vector<std::int32_t>> m_tokens, m_targets; ///< per microbatch
    std::vector<float> m_losses;                                ///< per microbatch, its share
};

} // namespace pipewright
