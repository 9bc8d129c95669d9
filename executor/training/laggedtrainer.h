// SPDX-License-Identifier: GPL-3.0-or-later
// The reference for schedules that update their weights within the step: the same model, data and stage maths, one
// block after another on the calling thread, keeping every version of a stage's weights until its last reader. Which
// version a block reads, and which gradients an update takes, comes from the schedule's rule (schedule/weightplan.h).
// It knows nothing of the Program or of how versions travel in memory. A run of that schedule must end with the same
// bits.
#pragma once

#include "core/schedule/schedule.h"
#include "core/schedule/validate.h"
#include "executor/stage/storedstage.h"
#include "executor/training/expertchoices.h"
#include "executor/training/optimizer.h"
#include "executor/training/trainingdata.h"

#include <span>
#include <vector>

namespace pipewright {

/// Where a stage's training stands between two steps.
struct StageStart {
    std::vector<float> parameters; ///< in bf16 the master copies
    std::vector<float> state;      ///< of the optimizer
    int updates = 0;               ///< so far
};

class LaggedTrainer {
public:
    /// `batch`: microbatches of an update. `schedule` and `data` must outlive the trainer. Throws Error for a schedule
    /// without U blocks, or one that cannot run.
    LaggedTrainer(const Workload& workload, const std::vector<int>& layersPerStage, const Schedule& schedule,
                  std::vector<SkipConnection> skips, int batch, const OptimizerSettings& optimizer,
                  const TrainingData& data);

    /// As SequentialTrainer::follow().
    void follow(FollowedRun* run) { m_followed = run; }

    /// One step from this start, on the microbatches of step `number`.
    void step(int number, std::vector<StageStart> start);

    int stages() const { return static_cast<int>(m_stages.size()); }
    const StoredStage& maths(int stage) const { return m_stages[static_cast<std::size_t>(stage)].maths; }
    /// After the step's last update.
    std::span<const float> parameters(int stage) const;
    /// Number of updates in the last step.
    int updates(int stage) const
    {
        return static_cast<int>(m_stages[static_cast<std::size_t>(stage)].versions.size()) - 1;
    }
    /// Per microbatch, its share of the loss.
    const std::vector<float>& losses() const { return m_losses; }

private:
    struct Microbatch {
        std::vector<std::byte> untilInputGrad, untilWeightGrad, fromInputGrad;
        std::vector<std::byte> output, inputGrad; ///< as they are stored
    };
    struct Version {
        StageStart at;
        std::vector<std::byte> stored{}; ///< in bf16, what passes read
    };
    struct Stage {
        StoredStage maths;
        StageOptimizer optimizer;
        std::vector<std::byte> workspace;
        std::vector<Microbatch> microbatches;
        std::vector<Version> versions{}; ///< by number of updates in this step; emptied after the last reader

        void add(StageStart version); ///< the newest
    };

    const Schedule& m_schedule;
    std::vector<SkipConnection> m_skips;
    const TrainingData& m_data;
    FollowedRun* m_followed = nullptr;
    std::vector<Stage> m_stages;
    std::vector<std::vector<std::int32_t>> m_tokens, m_targets; ///< per microbatch
    std::vector<float> m_losses;

    friend class LaggedStep;
};

} // namespace pipewright
