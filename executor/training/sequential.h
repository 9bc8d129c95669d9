// SPDX-License-Identifier: GPL-3.0-or-later
// The reference that every synchronous schedule is checked against: the same model, data and stage maths, run in plain
// order, one stage and one microbatch after another on the calling thread. Floating-point sums depend on their order,
// so the order in which each stage accumulates its microbatches is an argument; a pipelined run with that order must
// give the same bits. It keeps all microbatches of a step in memory at once.
#pragma once

#include "core/schedule/validate.h"
#include "executor/stage/storedstage.h"
#include "executor/training/expertchoices.h"
#include "executor/training/optimizer.h"
#include "executor/training/trainingdata.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

/// For each replica and stage (replica 0's stage 0, stage 1, …, replica 1's …) its microbatches in the order
/// in which they are summed. The replicas of a stage share all microbatches among them. Pieces of a sequence
/// come in descending order, since the backward of attention hands gradients to earlier pieces.
struct AccumulationOrder {
    std::vector<std::vector<int>> inputGrad;  ///< of I or B: layer norm gradients
    std::vector<std::vector<int>> weightGrad; ///< of W or B: all others
    /// One replica, sequences in ascending order.
    static AccumulationOrder ascending(int stages, int microbatches, int sequencePieces = 1);
};

/// How well the weights predict: the mean loss, and the share of targets that got the largest probability.
struct Evaluation {
    double loss = 0, accuracy = 0;
};

class SequentialTrainer {
public:
    /// `layersPerStage` cuts the workload's layers in order. Throws Error when it does not add up, or when
    /// the workload cannot be run. `data` must outlive the trainer. Skip connections add the output of a stage to the
    /// input of a later one, in the order given.
    SequentialTrainer(const Workload& workload, const std::vector<int>& layersPerStage, int microbatches,
                      const OptimizerSettings& optimizer, const TrainingData& data, std::uint64_t seed,
                      std::vector<SkipConnection> skips = {});

    /// One training step: all microbatches, the tied reduction in each replica, the sum over replicas, the
    /// update. Returns the step's loss, the sum of the microbatches' shares in ascending order. Throws Error
    /// for an order that does not name every microbatch once per stage, or pieces not from the last to the first.
    double step(const AccumulationOrder& order);

    /// Goes on from here: steps completed before, and the parameters they led to, per stage. The optimizer's
    /// state is not taken over, so only the next step's loss and gradients are those of that training.
    /// Throws Error when the sizes are not this model's.
    void startAt(int completedSteps, const std::vector<std::vector<float>>& parameters);

    /// Tokens of the next step visit the experts that they visited in this run. It must outlive that step.
    void follow(FollowedRun* run) { m_followed = run; }

    /// Forward only, on the microbatches of the present step; the parameters stay.
    Evaluation evaluate();

    int stages() const { return int(m_stages.size()); }
    const StoredStage& maths(int stage) const { return m_stages[std::size_t(stage)].maths; }
    std::span<const float> parameters(int stage) const { return m_stages[std::size_t(stage)].parameters; }
    /// Of the last step, after the reductions: the gradients that every replica ends with.
    std::span<const float> gradients(int stage) const { return m_stages[std::size_t(stage)].gradients.front(); }

private:
    struct Microbatch { ///< what one stage keeps of one microbatch
        std::vector<std::byte> untilInputGrad, untilWeightGrad, fromInputGrad;
        std::vector<std::byte> output;    ///< activation for the next stage, as it is stored
        std::vector<std::byte> inputGrad; ///< for the previous stage
    };
    struct Stage {
        StoredStage maths;
        StageOptimizer optimizer;
        std::vector<float> parameters, optimizerState; ///< in bf16 the parameters are master copies
        std::vector<std::byte> stored;                 ///< in bf16, what passes read
        std::vector<std::vector<float>> gradients;     ///< per replica; the first becomes the sum of all
        std::vector<std::byte> workspace;
        std::vector<Microbatch> microbatches;
        std::vector<const float*> saved;                       ///< per microbatch: where its untilInputGrad begins
        std::vector<std::vector<std::byte>> sequenceGradients; ///< per sequence, of its pieces

        std::span<const std::byte> weights() const
        {
            return maths.isBf16() ? std::span<const std::byte>(stored) : std::as_bytes(std::span(parameters));
        }
        void storeWeights(); ///< as the parameters are now
        StageMemory memory(int microbatch);
    };

    /// The inputs of a stage from skip connections: outputs of earlier stages, or gradients of later stages' inputs.
    std::vector<std::span<const std::byte>> skipInputs(std::size_t stage, std::size_t microbatch) const;
    std::vector<std::span<const std::byte>> skipGrads(std::size_t stage, std::size_t microbatch) const;

    void draw(); ///< the microbatches of the present step
    double forward();
    void backward(const AccumulationOrder& order);
    void reduceTied(std::size_t replica);
    void reduceReplicas();

    int m_microbatches, m_sequencePieces;
    int m_step = 0; ///< completed steps
    const TrainingData* m_data;
    FollowedRun* m_followed = nullptr;
    std::vector<SkipConnection> m_skips;
    std::vector<Stage> m_stages;
    std::vector<std::vector<std::int32_t>> m_tokens, m_targets; ///< per microbatch
};

} // namespace pipewright
