// SPDX-License-Identifier: GPL-3.0-or-later
// Several designs trained on the same rows of data from the same starting weights, update by update, to see how their
// weight policies affect learning. A design of a family with U blocks is generated again for the requested number of
// updates and runs through them without a flush; any other design is repeated. Row n of the data is a function of the
// seed and n alone, so policies with larger updates of smaller microbatches still see the same rows in the same order.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "core/program/weightreport.h"
#include "executor/training/optimizer.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace pipewright {

/// Progress of an experiment: an update of one of its runs is done.
struct ExperimentProgress {
    int run = 0, runs = 1; ///< number of the run, of how many
    std::string design;
    std::uint64_t seed = 0;
    int update = 0, updates = 1; ///< counted from 0
    double loss = 0;             ///< of that update
    double fraction() const { return (run + (update + 1.0) / updates) / runs; }
};

/// One design, one seed.
struct ExperimentRun {
    std::size_t design = 0; ///< number among the experiment's designs; the reference comes first
    bool reference = false; ///< the sequential run
    std::string name, rule, optimizer;
    std::uint64_t seed = 0;
    int devices = 0, stages = 0, microbatchesPerUpdate = 0;
    std::int64_t rowsPerUpdate = 0; ///< rows: sequences or samples
    bool classifies = false;
    std::vector<double> losses; ///< per update: mean loss of its microbatches, computed by their forwards
    double finalLoss = 0;       ///< mean of the last tenth of them
    bool heldBack = true;       ///< whether there is data that was never trained on
    double heldBackLoss = 0, heldBackAccuracy = 0;    ///< of the final weights, on that data; NaN: not known
    double updatesPerSecond = 0;                      ///< as measured here
    double predictedUpdatesPerSecond = 0;             ///< from the design's costs
    std::vector<Bytes> peakBytes, predictedPeakBytes; ///< per device
    std::vector<StageWeights> weights;                ///< empty without U blocks
    /// Per stage, for weights predicted through PyTorch: root mean squared error against the weights that followed, and
    /// the same error without predicting; NaN where nothing is predicted. weightBytes: the most that copies of the
    /// weights took.
    std::vector<double> predictionErrors{}, staleErrors{};
    std::vector<Bytes> weightBytes{};
    /// Per update: share of the rows whose class got the largest output in their forwards; empty where it is not
    /// recorded.
    std::vector<double> accuracies{};
    bool readsAgree = true;                     ///< every block read the version that was compiled
    std::optional<bool> bitEqual{};             ///< whether the final weights equal those of this seed's reference
    std::vector<std::vector<float>> parameters; ///< per stage, at the end
    bool cancelled = false;                     ///< only fields that are known before a run are filled in
};

struct ExperimentOptions {
    int updates = 100, seeds = 1;
    std::string data;                     ///< see loadSplitData
    std::optional<Optimizer> optimizer{}; ///< in place of the designs' own
    std::optional<double> learningRate{}, momentum{};
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(const Diagnostics&)> abandon{}; ///< as in RuntimeOptions
    /// After each update, by a thread of the run, one call at a time.
    std::function<void(const ExperimentProgress&)> progress{};
    /// After each run that was not cancelled, on the calling thread.
    std::function<void(const ExperimentRun&)> finished{};
};

struct Experiment {
    std::vector<ExperimentRun> runs; ///< the finished ones: seed by seed, the reference first for each seed
    int planned = 0;
    bool cancelled = false;
};

/// Trains all designs with seeds 1 to options.seeds, and the sequential reference of the first design. Throws Error
/// with the reason when one of them cannot be trained, before any training.
Experiment runExperiment(const std::vector<Design>& designs, const ExperimentOptions& options);

/// The reference: plain training of the same model on one device, with as many microbatches per update.
Design sequentialReference(const Design& design);

/// The design for at least so many updates: generated again if its family can, else unchanged, to be repeated.
Design withUpdates(const Design& design, int updates);

} // namespace pipewright
