// SPDX-License-Identifier: GPL-3.0-or-later
// The results of an experiment: a line per design with means over its seeds and their spread, this table and the curves
// as CSV, curves for a picture, and warnings on what makes a comparison unfair.
#pragma once

#include "core/exchange/losspicture.h"
#include "core/json/jsonvalue.h"
#include "executor/experiment/experiment.h"
#include "traces/store/experimentstore.h"

namespace pipewright {

/// Mean over seeds, and the distance from the smallest to the largest.
struct Spread {
    double mean = 0, range = 0;
};

struct ExperimentSummary {
    std::string name, rule, optimizer;
    bool reference = false, classifies = false, heldBack = true;
    int seeds = 0;
    Spread finalLoss, heldBackLoss, heldBackAccuracy, updatesPerSecond;
    double predictedUpdatesPerSecond = 0;
    Bytes peakBytes = 0, predictedPeakBytes = 0; ///< of the fullest device
    std::vector<int> staleness, copies;          ///< per stage; empty where every update is a flush
    bool readsAgree = true;
    std::optional<bool> bitEqual{}; ///< in every seed, compared with the sequential reference
};

/// In the order of the designs; the reference first.
std::vector<ExperimentSummary> summarise(const std::vector<ExperimentRun>& runs);

std::string curvesCsv(const std::vector<ExperimentRun>& runs);       ///< a row per update, a column per run
std::string summaryCsv(const std::vector<ExperimentSummary>& lines); ///< a row per design
std::vector<LossSeries> lossCurves(const std::vector<ExperimentRun>& runs);
std::vector<LossSeries> accuracyCurves(const std::vector<ExperimentRun>& runs); ///< the share of right answers

JsonValue toJson(const ExperimentRun& run); ///< losses that are not finite are null

/// The inverse of toJson(), which leaves parameters out.
ExperimentRun experimentRunFrom(const JsonValue& object);

/// A row for the SQLite file of experiments.
ExperimentRecord recordOf(const ExperimentRun& run);

/// Warnings: updates of different sizes, and models of different sizes.
Diagnostics whatIsUnfair(const std::vector<ExperimentRun>& runs);

} // namespace pipewright
