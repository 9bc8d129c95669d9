// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/experimentstore.h"

#include "core/base/diagnostic.h"

#include <SQLiteCpp/SQLiteCpp.h>

namespace pipewright {

namespace {

constexpr const char* createTables = R"sql(
CREATE TABLE IF NOT EXISTS EXPERIMENT_RUNS (
    id INTEGER PRIMARY KEY, design TEXT NOT NULL, rule TEXT NOT NULL, optimizer TEXT NOT NULL, seed INTEGER NOT NULL,
    devices INTEGER NOT NULL, stages INTEGER NOT NULL, microbatchesPerUpdate INTEGER NOT NULL,
    finalLoss REAL, heldBackLoss REAL, heldBackAccuracy REAL, updatesPerSecond REAL, predictedUpdatesPerSecond REAL, peakBytes INTEGER);
CREATE TABLE IF NOT EXISTS EXPERIMENT_LOSSES (
    run INTEGER NOT NULL REFERENCES EXPERIMENT_RUNS(id), updateNumber INTEGER NOT NULL, loss REAL, PRIMARY KEY (run, updateNumber)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS EXPERIMENT_STAGES (
    run INTEGER NOT NULL REFERENCES EXPERIMENT_RUNS(id), stage INTEGER NOT NULL, staleness INTEGER, meanStaleness REAL,
    forwardSteps INTEGER, backwardSteps INTEGER, versions INTEGER, copies INTEGER, PRIMARY KEY (run, stage)) WITHOUT ROWID;
)sql";

} // namespace

ExperimentStore::ExperimentStore(const std::string& path)
{
    try {
        m_database = std::make_unique<SQLite::Database>(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
        m_database->exec("PRAGMA journal_mode = WAL");
        m_database->exec(createTables);
    } catch (const SQLite::Exception& error) {
        throw Error(path, error.what(), "name a new file, or one that an experiment wrote");
    }
}

ExperimentStore::~ExperimentStore() = default;

void ExperimentStore::add(const ExperimentRecord& record)
{
    try {
        SQLite::Transaction transaction(*m_database);
        SQLite::Statement run(*m_database, "INSERT INTO EXPERIMENT_RUNS VALUES (NULL,?,?,?,?,?,?,?,?,?,?,?,?,?)");
        int column = 0;
        for (const std::string* text : {&record.design, &record.rule, &record.optimizer})
            run.bind(++column, *text);
        run.bind(++column, record.seed);
        for (const int number : {record.devices, record.stages, record.microbatchesPerUpdate})
            run.bind(++column, number);
        for (const double number :
             {record.finalLoss, record.heldBackLoss, record.heldBackAccuracy, record.updatesPerSecond, record.predictedUpdatesPerSecond})
            run.bind(++column, number);
        run.bind(++column, record.peakBytes);
        run.exec();
        const std::int64_t id = m_database->getLastInsertRowid();
        SQLite::Statement loss(*m_database, "INSERT INTO EXPERIMENT_LOSSES VALUES (?,?,?)");
        for (std::size_t i = 0; i < record.losses.size(); ++i) {
            loss.bind(1, id);
            loss.bind(2, static_cast<std::int64_t>(i));
            loss.bind(3, record.losses[i]);
            loss.exec();
            loss.reset();
        }
        SQLite::Statement stage(*m_database, "INSERT INTO EXPERIMENT_STAGES VALUES (?,?,?,?,?,?,?,?)");
        for (const StageWeights& weights : record.weights) {
            stage.bind(1, id);
            stage.bind(2, weights.stage);
            stage.bind(3, weights.staleness);
            stage.bind(4, weights.meanStaleness);
            stage.bind(5, weights.forwardSteps);
            stage.bind(6, weights.backwardSteps);
            stage.bind(7, weights.versions);
            stage.bind(8, weights.copies);
            stage.exec();
            stage.reset();
        }
        transaction.commit();
    } catch (const SQLite::Exception& error) {
        throw Error(m_database->getFilename(), error.what(), "is there room on the disk?");
    }
}

} // namespace pipewright
