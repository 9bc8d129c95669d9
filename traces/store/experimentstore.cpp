// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/experimentstore.h"

#include "core/base/diagnostic.h"
#include "core/base/outputfile.h"
#include "traces/store/database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <map>
#include <string>
#include <string_view>

namespace pipewright {

namespace {

constexpr int longestAddedValue = 1 << 20; ///< bytes: also of what defaults and checks of an untrusted table compute

struct Column {
    std::string_view name, type;
    bool needed() const
    {
        return type.find("NOT NULL") != std::string_view::npos || type.find("KEY") != std::string_view::npos;
    }
};
struct ExperimentTable {
    const char* name;
    std::vector<Column> columns;
    const char* key; ///< what follows the columns

    std::string create() const
    {
        std::string text;
        for (const Column& column : columns)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", column.name, column.type);
        return fmt::format("CREATE TABLE IF NOT EXISTS {} ({}{}", name, text, key);
    }
    /// By name, since a file from before a column was added has it at the end.
    std::string insert() const
    {
        std::string names, marks;
        for (const Column& column : columns) {
            names += fmt::format("{}{}", names.empty() ? "" : ",", column.name);
            marks += marks.empty() ? "?" : ",?";
        }
        return fmt::format("INSERT INTO {} ({}) VALUES ({})", name, names, marks);
    }
};

const ExperimentTable runs{"EXPERIMENT_RUNS",
                           {{"id", "INTEGER PRIMARY KEY"},
                            {"design", "TEXT NOT NULL"},
                            {"rule", "TEXT NOT NULL"},
                            {"optimizer", "TEXT NOT NULL"},
                            {"seed", "INTEGER NOT NULL"},
                            {"devices", "INTEGER NOT NULL"},
                            {"stages", "INTEGER NOT NULL"},
                            {"microbatchesPerUpdate", "INTEGER NOT NULL"},
                            {"finalLoss", "REAL"},
                            {"heldBackLoss", "REAL"},
                            {"heldBackAccuracy", "REAL"},
                            {"updatesPerSecond", "REAL"},
                            {"predictedUpdatesPerSecond", "REAL"},
                            {"peakBytes", "INTEGER"}},
                           ")"};
const ExperimentTable losses{"EXPERIMENT_LOSSES",
                             {{"run", "INTEGER NOT NULL REFERENCES EXPERIMENT_RUNS(id)"},
                              {"updateNumber", "INTEGER NOT NULL"},
                              {"loss", "REAL"}},
                             ", PRIMARY KEY (run, updateNumber)) WITHOUT ROWID"};
const ExperimentTable stages{"EXPERIMENT_STAGES",
                             {{"run", "INTEGER NOT NULL REFERENCES EXPERIMENT_RUNS(id)"},
                              {"stage", "INTEGER NOT NULL"},
                              {"staleness", "INTEGER"},
                              {"meanStaleness", "REAL"},
                              {"forwardSteps", "INTEGER"},
                              {"backwardSteps", "INTEGER"},
                              {"versions", "INTEGER"},
                              {"copies", "INTEGER"}},
                             ", PRIMARY KEY (run, stage)) WITHOUT ROWID"};

/// For a file of another version: missing columns are added, empty in old rows; unknown columns stay empty in new rows.
/// Otherwise the file is left unchanged.
void bringUpToDate(SQLite::Database& database, const ExperimentTable& table)
{
    std::map<std::string, bool, std::less<>> present; // and whether it must be filled
    SQLite::Statement info(database, fmt::format("PRAGMA table_info({})", table.name));
    while (info.executeStep())
        present[info.getColumn(1).getString()] = info.getColumn(3).getInt() != 0 && info.getColumn(4).isNull();
    for (const Column& column : table.columns) {
        if (const auto found = present.find(column.name); found != present.end()) {
            present.erase(found);
        } else if (column.needed()) {
            throw Error(
                database.getFilename(),
                fmt::format("its table {} has no column {}, so no experiment wrote it", table.name, column.name),
                "name a new file");
        } else {
            database.exec(fmt::format("ALTER TABLE {} ADD COLUMN {} {}", table.name, column.name, column.type));
        }
    }
    for (const auto& [name, mustBeFilled] : present)
        if (mustBeFilled)
            throw Error(database.getFilename(),
                        fmt::format("its table {} wants a value for {}, which is not known here", table.name, name),
                        "name a new file, or use the version of Pipewright that wrote this one");
}

} // namespace

ExperimentStore::ExperimentStore(const std::string& path)
{
    const std::string file = outputTarget(path); // an existing regular file is extended
    try {
        m_database = std::make_unique<SQLite::Database>(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
        limitDatabase(*m_database); // the file may be untrusted
        sqlite3_limit(m_database->getHandle(), SQLITE_LIMIT_LENGTH, longestAddedValue);
        refusePrograms(*m_database);
        if (SQLite::Statement trigger(*m_database, "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TRIGGER %'");
            trigger.executeStep())
            throw Error(file, "it has the trigger " + inQuotes(trigger.getColumn(0).getText()) + ", which will not run",
                        "name a new file");
        m_database->exec("PRAGMA journal_mode = WAL");
        SQLite::Transaction transaction(*m_database); // atomic
        for (const ExperimentTable* table : {&runs, &losses, &stages}) {
            m_database->exec(table->create());
            bringUpToDate(*m_database, *table);
        }
        transaction.commit();
    } catch (const SQLite::Exception& error) {
        throw Error(path, error.what(), "name a new file, or one that an experiment wrote");
    }
}

ExperimentStore::~ExperimentStore() = default;

void ExperimentStore::add(const ExperimentRecord& record)
{
    try {
        SQLite::Transaction transaction(*m_database);
        SQLite::Statement run(*m_database, runs.insert());
        int column = 1; // the first is the id, which is counted
        for (const std::string* text : {&record.design, &record.rule, &record.optimizer})
            run.bind(++column, *text);
        run.bind(++column, record.seed);
        for (const int number : {record.devices, record.stages, record.microbatchesPerUpdate})
            run.bind(++column, number);
        for (const double number : {record.finalLoss, record.heldBackLoss, record.heldBackAccuracy,
                                    record.updatesPerSecond, record.predictedUpdatesPerSecond})
            run.bind(++column, number);
        run.bind(++column, record.peakBytes);
        run.exec();
        const std::int64_t id = m_database->getLastInsertRowid();
        SQLite::Statement loss(*m_database, losses.insert());
        for (std::size_t i = 0; i < record.losses.size(); ++i) {
            loss.bind(1, id);
            loss.bind(2, static_cast<std::int64_t>(i));
            loss.bind(3, record.losses[i]);
            loss.exec();
            loss.reset();
        }
        SQLite::Statement stage(*m_database, stages.insert());
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
        throw Error(m_database->getFilename(), std::string("cannot be written: ") + error.what(), writingHint);
    }
}

} // namespace pipewright
