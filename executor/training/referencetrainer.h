// SPDX-License-Identifier: GPL-3.0-or-later
// The reference that every schedule on single devices is checked against: the same model, data and stage maths, one
// block after another on the calling thread, in an order of the schedule's own graph (core/schedule/ordergraph.h). It
// knows nothing of the Program. Which version of its stage's weights a block reads, and which gradients an update
// takes, comes from the schedule's rule (core/schedule/weightplan.h). Without U blocks all read one version, and all
// stages are updated at the end of the step. Floating-point sums depend on their order, so gradients are summed where
// the schedule's devices sum them and in the same order: a run of the schedule must give the same bits. It keeps all
// microbatches of a step in memory at once, and every version of the weights until its last reader.
#pragma once

#include "core/base/indexed.h"
#include "core/schedule/schedule.h"
#include "core/schedule/validate.h"
#include "executor/stage/storedstage.h"
#include "executor/training/expertchoices.h"
#include "executor/training/optimizer.h"
#include "executor/training/trainingdata.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace pipewright {

/// Where a stage's training stands between two updates.
struct StageStart {
    std::vector<float> parameters; ///< in bf16 the master copies
    std::vector<float> state{};    ///< of the optimizer; empty: zeros, with which it begins
    int updates = 0;               ///< so far
};

/// How well the weights predict: the mean loss, and the share of targets that got the largest probability.
struct Evaluation {
    double loss = 0, accuracy = 0;
};

class ReferenceTrainer {
public:
    /// `layersPerStage` cuts the workload's layers in order; `microbatches`: of a step; `batch`: of an update, over
    /// which gradients are averaged, 0 for all of a step. Skip connections add the output of a stage to the input of a
    /// later one, in the order given. `data` must outlive the trainer. Throws Error when the numbers do not add up, or
    /// when the workload cannot be run.
    ReferenceTrainer(const Workload& workload, const std::vector<int>& layersPerStage, int microbatches,
                     const OptimizerSettings& optimizer, const TrainingData& data, std::uint64_t seed,
                     std::vector<SkipConnection> skips = {}, int batch = 0);

    /// Goes on from here: steps completed before, and where every stage stands after them. Throws Error when the sizes
    /// are not this model's.
    void startAt(int completedSteps, std::vector<StageStart> start);
    /// Tokens visit the experts that they visited in this run from now on; null: those of the reference's own choice.
    /// It must outlive the next step.
    void follow(FollowedRun* run) { m_followed = run; }

    /// One training step. Returns its loss: the sum of the microbatches' shares in ascending order; with several
    /// updates, their mean. Throws Error for a schedule that cannot run, or one of another shape than the model.
    double step(const Schedule& schedule);
    /// Forward only, on the microbatches of the present step; the parameters stay.
    Evaluation evaluate();

    int stages() const { return m_stages.size(); }
    const StoredStage& maths(int stage) const { return m_stages[stage].maths; }
    std::span<const float> parameters(int stage) const { return m_stages[stage].versions.back().at.parameters; }
    /// Of the last step, if its schedule had no U blocks: the gradients that every replica ends with.
    std::span<const float> gradients(int stage) const { return m_stages[stage].sums.at(0); }
    /// Number of updates in the last step.
    int updates(int stage) const { return static_cast<int>(m_stages[stage].versions.size()) - 1; }

private:
    struct Microbatch { ///< what one stage keeps of one microbatch
        std::vector<std::byte> untilInputGrad, untilWeightGrad, fromInputGrad;
        std::vector<std::byte> output;    ///< activation for the next stage, as it is stored
        std::vector<std::byte> inputGrad; ///< for the previous stage
    };
    struct Version {
        StageStart at;
        std::vector<std::byte> stored{}; ///< in bf16, what passes read
    };
    struct Stage {
        StoredStage maths;
        StageOptimizer optimizer;
        std::vector<std::byte> workspace{};
        ByMicrobatch<Microbatch> microbatches{};
        std::vector<const float*> saved{};                       ///< per microbatch: where its untilInputGrad begins
        std::vector<std::vector<std::byte>> sequenceGradients{}; ///< per sequence, of its pieces
        std::vector<Version> versions{};          ///< by number of updates in this step; emptied after the last reader
        std::map<int, std::vector<float>> sums{}; ///< of gradients: by replica or, with U blocks, by device

        void add(StageStart version); ///< the newest
        std::span<const std::byte> weights(const Version& version) const;
        StageMemory memory(int microbatch);
    };
    class Step;

    void draw(); ///< the microbatches of the present step
    void forward(int stage, int microbatch, std::span<const std::byte> weights);
    void inputGrad(int stage, int microbatch, std::span<const std::byte> weights, std::span<float> gradients);
    double loss() const;

    int m_batch, m_sequencePieces;
    int m_step = 0; ///< completed steps
    const TrainingData& m_data;
    FollowedRun* m_followed = nullptr;
    std::vector<SkipConnection> m_skips;
    ByStage<Stage> m_stages;
    ByMicrobatch<std::vector<std::int32_t>> m_tokens, m_targets;
    ByMicrobatch<float> m_losses; ///< its share
};

} // namespace pipewright
