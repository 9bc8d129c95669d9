// SPDX-License-Identifier: GPL-3.0-or-later
// Tracks which weight version each memory really holds while a schedule with U blocks is trained. A version is counted
// where an update happens and is carried along with every copy, never taken from the Program, so that the version a
// block found can be compared with the compiled one. The blocks of a device call this for one stage at a time; what
// passes between devices is ordered by its transfer.
#pragma once

#include "executor/runtime/stagework.h"
#include "executor/training/optimizer.h"

#include <algorithm>
#include <vector>

namespace pipewright {

/// The weights that a block was found to read.
struct WeightReading {
    std::int32_t version = -1; ///< updates in the weights; -1: it reads no weights
    std::int32_t steps = 0;    ///< updates that the weights were predicted ahead
    bool operator==(const WeightReading&) const = default;
};

/// A device's copy of a stage.
struct StageCopy {
    /// In fp32: the stored parameters, or in bf16 the master copies, which only the devices that update have.
    std::span<float> parameters;
    std::span<float> gradients; ///< what passes add to
    /// Of replicas that share out gradients: this one's share of their sum, from then to the end of the step.
    /// `gradients` is then there from the stage's first backward to the sum.
    std::span<float> keptGradients{};
    std::span<float> state;        ///< of the optimizer, without master copies
    std::span<std::byte> stored{}; ///< what passes read; of replicas that share out parameters: their share of it
    std::int32_t version = 0;      ///< updates since the run began
};

class VersionedWeights {
public:
    /// Keeps a reference to the program, which has U blocks.
    void prepare(const Program& program);
    /// Versions in the Program count from the beginning of the step.
    void beginStep(std::span<const StageCopy> copies);

    /// The weights that F, B or I reads, as they are stored. Predicts them first where this block has to.
    std::span<const std::byte> beforeBlock(const TaskContext& context, const StageCopy& copy, bool bf16,
                                           const StageOptimizer& optimizer);
    /// Where B, I or W accumulates its gradients. A partial sum that another block handed over is copied there first.
    std::span<float> gradientSum(const TaskContext& context, const StageCopy& copy);
    /// Hands the gradient sum on when it is complete here.
    void afterBlock(const TaskContext& context, StageCopy& copy);
    /// Updates the stage, puts in place what another device made, or sends out a copy of it as it is.
    void update(const TaskContext& context, StageCopy& copy, bool bf16, const StageOptimizer& optimizer);

    /// Per task, of the last step.
    const std::vector<WeightReading>& readings() const { return m_readings; }
    /// The first task that read another version than was compiled; `none` when all agree.
    TaskId firstDifference() const;

private:
    /// Predicts from the newest weights into `made`. Where weights are stored in bf16 and the device does not compute
    /// with bf16, it goes part by part through the workspace of the block, which has not started.
    static void predict(const TaskContext& context, const StageCopy& copy, bool bf16, const StageOptimizer& optimizer,
                        int steps, std::span<std::byte> made);
    WeightReading held(BufferId buffer) const { return m_held[buffer]; }

    const Program* m_program = nullptr;
    std::int32_t m_base = 0;
    std::vector<WeightReading> m_held;     ///< per buffer of weights: the version in it
    std::vector<BufferId> m_cameFrom;      ///< per received buffer: the one that was sent
    std::vector<WeightReading> m_readings; ///< per task
};

} // namespace pipewright
