// SPDX-License-Identifier: GPL-3.0-or-later
// Which weights are really in which memory while a schedule with U blocks is trained. Versions are counted where
// updates happen and carried along with every copy that is made, never taken from the Program, so that what a
// block was found to read can be compared with what was compiled. One device's blocks call for one stage at a
// time; what passes between devices is ordered by its transfer.
#pragma once

#include "executor/runtime/stagework.h"
#include "executor/training/optimizer.h"
#include "executor/training/storedstage.h"

#include <algorithm>
#include <vector>

namespace pipewright {

/// What a block was found to read.
struct WeightReading {
    std::int32_t version = -1; ///< updates in the weights; -1: it reads none
    std::int32_t steps = 0;    ///< predicted by so many updates
    bool operator==(const WeightReading&) const = default;
};

/// What a device holds of a stage.
struct StageCopy {
    /// In fp32: the stored ones, or in bf16 the master copies, which are only where the updates are made.
    std::span<float> parameters;
    std::span<float> gradients;
    std::span<float> state;        ///< of the optimizer, without master copies
    std::span<std::byte> stored{}; ///< what passes read
    std::int32_t version = 0;      ///< updates since the run began
};

class VersionedWeights {
public:
    /// Keeps a reference to the program, which has U blocks.
    void prepare(const Program& program);
    /// Versions in the Program count from the beginning of the step.
    void beginStep(std::span<const StageCopy> copies);

    /// The weights that F, B or I reads, as they are stored, predicted first when it is this block that does it.
    std::span<const std::byte> beforeBlock(const TaskContext& context, const StageCopy& copy, const StoredStage& maths,
                                           const StageOptimizer& optimizer);
    /// Where B, I or W adds its gradients up, with the sum that came from elsewhere put in place.
    std::span<float> gradientSum(const TaskContext& context, const StageCopy& copy);
    /// Hands the gradient sum on when it is complete here.
    void afterBlock(const TaskContext& context, StageCopy& copy);
    /// Updates the stage, puts in place what another device made, or sends out a copy of it as it is.
    void update(const TaskContext& context, StageCopy& copy, const StoredStage& maths, const StageOptimizer& optimizer);

    /// Per task, of the last step.
    const std::vector<WeightReading>& readings() const { return m_readings; }
    /// The first task that read something else than was compiled; none when all agree.
    TaskId firstDifference() const;

private:
    /// Of the newest weights into `made`. Where weights are stored in two bytes and the device does not compute with
    /// such, part by part through the workspace of the block, which has not begun.
    static void predict(const TaskContext& context, const StageCopy& copy, const StoredStage& maths,
                        const StageOptimizer& optimizer, int steps, std::span<std::byte> made);
    WeightReading held(BufferId buffer) const { return m_held[buffer]; }

    const Program* m_program = nullptr;
    std::int32_t m_base = 0;
    std::vector<WeightReading> m_held;     ///< per buffer of weights: what is in it
    std::vector<BufferId> m_cameFrom;      ///< per received buffer: the one that was sent
    std::vector<WeightReading> m_readings; ///< per task
};

} // namespace pipewright
