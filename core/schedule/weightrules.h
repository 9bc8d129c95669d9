// SPDX-License-Identifier: GPL-3.0-or-later
// The published weight rules, PipeOptim's and CDP-v2's among them: one small object per rule, called once per block.
// Given the block's state (how many updates its stage has applied by then, what its forward read), it returns the
// version to read and the number of updates to predict ahead. Weights predicted by s updates from version v are a
// function of v, s and the optimizer's state after update v alone.
#pragma once

#include "core/schedule/block.h"
#include "core/schedule/weightpolicy.h"

#include <memory>

namespace pipewright {

/// A block of a stage, as a rule sees it. Versions are counted from 0: version v has had v updates.
struct WeightQuestion {
    int stages = 1;            ///< D, or N
    int stage = 0;             ///< k, or j
    int batch = 0;             ///< t: the update that its gradient feeds, which leads from version t to t + 1
    int inBatch = 0;           ///< position among the microbatches of that update in ascending order; CDP: the worker i
    int batchSize = 1;         ///< T, or m, or N
    int latest = 0;            ///< updates of this stage before the block in its device's order
    int latestAtInjection = 0; ///< the same for this microbatch's forward on stage 0 …
    int latestAtBatchInjection = 0; ///< … and for that of the first microbatch of its batch
    int latestAtFirstForward = 0;   ///< on this stage, at the forward of the first microbatch of its batch
    int atForward = 0;              ///< for a backward: the version that its forward read
};

/// Which block made the predicted weights that a block reads.
enum class PredictionOf : std::uint8_t {
    Block,        ///< made for itself
    Forward,      ///< made by the forward of the same stage and microbatch
    FirstOfBatch, ///< made by the same pass of the batch's first microbatch, XPipe's bellwether
};

struct WeightAnswer {
    int version = 0;
    int steps = 0; ///< predicted this many updates ahead
    PredictionOf prediction = PredictionOf::Block;
};

class VersionRule {
public:
    virtual ~VersionRule() = default;
    virtual WeightAnswer forward(const WeightQuestion& block) const = 0;
    virtual WeightAnswer backward(const WeightQuestion& block) const = 0;
    /// True when versions are given by number alone, so that the workers of a stage may be on separate devices.
    virtual bool namesVersions() const { return false; }
    /// An error for this batch size and number of stages; nothing when they are valid.
    virtual std::optional<Diagnostic> refuses(int stages, int batchSize) const
    {
        (void)stages, (void)batchSize;
        return std::nullopt;
    }
};

std::unique_ptr<const VersionRule> makeRule(const WeightPolicy& policy);
std::unique_ptr<const VersionRule> pipeOptimRule(PredictionSteps steps);
std::unique_ptr<const VersionRule> cdpRule(bool freshest); ///< CDP-v2's, or CDP-v1's

/// The time at which F or B of microbatch m runs on stage j of N, in units of one stage's pass: 2 m + j, and 2 m + 2 N
/// - 1 - j (arXiv 2403.08837, figure 1; worker i of training step t has microbatch t N + i).
std::int64_t cyclicTime(Op op, int stages, int stage, int microbatch);

/// Prediction steps by formula, for stage k of D. SpecTrain: floor(k/2) + D - k - 1 forward, floor(k/2) backward.
int specTrainForwardSteps(int stages, int stage);
int specTrainBackwardSteps(int stage);
/// XPipe, T microbatches per mini-batch: (D + T - k/2 - 2) / T forward, (T + floor(k/2) - 1) / T backward, before
/// rounding.
double xpipeForwardSteps(int stages, int stage, int batchSize);
double xpipeBackwardSteps(int stage, int batchSize);
int rounded(double steps, StepRounding rounding);

} // namespace pipewright
