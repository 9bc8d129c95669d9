// SPDX-License-Identifier: GPL-3.0-or-later
// Results of experiments in a SQLite file: one row per run, per update's loss and per stage's weights. Runs are
// added as they end, so a stopped experiment keeps its finished runs.
#pragma once

#include "core/program/weightreport.h"

#include <memory>
#include <string>
#include <vector>

namespace SQLite {
class Database;
}

namespace pipewright {

struct ExperimentRecord {
    std::string design, rule, optimizer;
    std::int64_t seed = 0;
    int devices = 0, stages = 0, microbatchesPerUpdate = 0;
    double finalLoss = 0, heldBackLoss = 0, heldBackAccuracy = 0, updatesPerSecond = 0, predictedUpdatesPerSecond = 0;
    Bytes peakBytes = 0; ///< of the fullest device
    std::vector<double> losses;
    std::vector<StageWeights> weights;
};

class ExperimentStore {
public:
    /// Creates the file, or adds to an existing experiment file, including one of a version with fewer columns. Throws
    /// Error.
    explicit ExperimentStore(const std::string& path);
    ~ExperimentStore();

    void add(const ExperimentRecord& record);

private:
    std::unique_ptr<SQLite::Database> m_database;
};

} // namespace pipewright
