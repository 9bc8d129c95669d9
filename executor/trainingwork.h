// SPDX-License-Identifier: GPL-3.0-or-later
// Real training as the runtime's work: binds the buffers of a Program to the stage maths. Everything that a
// microbatch keeps lives in the Program's buffers; only text, gradients' zeroing and losses are held here.
// Sums are made in the order of each device's list and nowhere else, which is why every synchronous
// schedule gives the bits of the sequential reference for that order.
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
    std::span<const float> parameters(int stage) const { return at(stage).parameters; }
    /// Of the last step, after the reduction of shared parameters.
    std::span<const float> gradients(int stage) const { return at(stage).gradients; }

private:
    struct Stage {
        StageMaths maths;
        StageOptimizer optimizer;
        std::span<float> parameters, gradients, state;
    };
    const Stage& at(int stage) const { return m_stages[static_cast<std::size_t>(stage)]; }

    std::vector<Stage> m_stages;
    std::uint64_t m_seed;
    const TextData& m_data;
    std::vector<std::vector<std::int32_t>> m_tokens, m_targets; ///< per microbatch
    std::vector<float> m_losses;                                ///< per microbatch, its share
};

} // namespace pipewright
