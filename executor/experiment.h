// SPDX-License-Identifier: GPL-3.0-or-later
// Several designs trained on the same rows of text from the same starting weights, update by update, to see what
// their weight policies do to learning. A design of a family with U blocks is made anew for as many updates as asked
// for and run through without a flush; any other is repeated. Row n of the data is a function of the seed and n
// alone, so policies with larger updates of smaller microbatches still see the same rows in the same order.
#pragma once

#include "core/program/design.h"
#include "core/program/weightreport.h"
#include "executor/training/optimizer.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct ExperimentOptions {
    int updates = 100;
    std::string data;                      ///< text: a file or folder; its last tenth is held back
    std::optional<UpdateRule> optimizer{}; ///< in place of what the designs say
    std::optional<double> learningRate{}, momentum{};
    const std::atomic<bool>* cancel = nullptr;
    /// During a run, from another thread: updates begun so far, and the loss of the last microbatch.
    std::function<void(int update, double loss)> progress{};
};

/// One design, one seed.
struct ExperimentRun {
    std::string name, rule, optimizer;
    std::uint64_t seed = 0;
    int devices = 0, stages = 0, microbatchesPerUpdate = 0;
    std::int64_t tokensPerUpdate = 0;
    std::vector<double> losses;           ///< per update: mean token loss of its microbatches, as their forwards saw it
    double finalLoss = 0;                 ///< mean of the last tenth of them
    double heldBackLoss = 0;              ///< of the final weights
    double updatesPerSecond = 0;          ///< as measured here
    double predictedUpdatesPerSecond = 0; ///< from the design's costs
    std::vector<Bytes> peakBytes, predictedPeakBytes; ///< per device
    std::vector<StageWeights> weights;                ///< empty without U blocks
    bool readsAgree = true;                           ///< every block read the version that was compiled
    std::vector<std::vector<float>> parameters;       ///< per stage, at the end
};

/// Throws Error when the design cannot be trained, with the reason.
ExperimentRun runExperiment(const Design& design, std::uint64_t seed, const ExperimentOptions& options);

/// Plain training of the same model on one device, with updates of the same microbatches: the reference.
Design sequentialReference(const Design& design);

/// The design for at least so many updates: made anew where its family makes it, else as it is, to be repeated.
Design withUpdates(const Design& design, int updates);

} // namespace pipewright
