// SPDX-License-Identifier: GPL-3.0-or-later
// A trace may come from a stranger. Whatever its schema holds, reading it ends, and says what is wrong.
#include "testmain.h"
#include "traces/import/traceimport.h"
#include "traces/store/activitystore.h"
#include "traces/store/database.h"
#include "traces/store/experimentstore.h"
#include "traces/store/query.h"
#include "traces/store/recording.h"
#include "traces/store/tracereader.h"
#include "traces/store/tracerecovery.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <QElapsedTimer>
#include <QFile>
#include <QTest>

#include <functional>
#include <vector>

#include <sys/stat.h>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr const char* endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) ";

} // namespace

class TestHostileTrace : public QObject {
    Q_OBJECT

private:
    Folder m_folder;

    std::string record(const char* name)
    {
        const std::string path = m_folder / name;
        const Design design = smallDesign();
        const Prediction prediction = predict(design);
        TraceWriter writer(path, design, prediction.program, smallHeader());
        for (int step = 0; step < 2; ++step) {
            const Nanoseconds origin = step * prediction.metrics.makespan;
            writer.append(recordsOf(prediction.program, prediction.timeline, step, origin));
            writer.append(StepRecord{step, origin, origin + prediction.metrics.makespan, 0.5});
        }
        writer.commit();
        return path;
    }

private Q_SLOTS:
    void aTableThatIsAViewIsNotRead_data()
    {
        QTest::addColumn<QString>("table");
        SQLite::Database database(record("tables.db"), SQLite::OPEN_READONLY);
        SQLite::Statement names(database,
                                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'");
        while (names.executeStep())
            QTest::newRow(names.getColumn(0).getText()) << QString::fromUtf8(names.getColumn(0).getText());
    }

    void aTableThatIsAViewIsNotRead()
    {
        QFETCH(QString, table);
        const std::string name = table.toStdString(), path = record((name + ".db").c_str());
        {
            SQLite::Database database(path, SQLite::OPEN_READWRITE);
            std::string columns;
            SQLite::Statement shape(database, "SELECT name FROM pragma_table_info('" + name + "')");
            while (shape.executeStep())
                columns += (columns.empty() ? "x AS " : ", x AS ") + shape.getColumn(0).getString();
            database.exec("DROP TABLE \"" + name + "\"");
            // 6 tables and their indexes, joined with themselves 16 times: as good as without end.
            std::string rows = "SELECT 1 AS x FROM sqlite_master a0";
            for (int i = 1; i < 16; ++i)
                rows += ", sqlite_master a" + std::to_string(i);
            database.exec("CREATE VIEW \"" + name + "\" AS SELECT " + columns + " FROM (" + rows + ")");
        }
        const std::string read = errorOf([&] {
            TraceReader reader(path);
            reader.design();
            reader.steps();
        });
        const std::string asked = errorOf([&] { queryTrace(path, "SELECT * FROM \"" + name + "\""); });
        QVERIFY2(asked.find("access to view") != std::string::npos, asked.c_str());
        QVERIFY2(read.empty() || read.find("view") != std::string::npos, read.c_str());
        QVERIFY(errorOf([&] { schemaOf(path); }).empty());
    }

    void aFormulaOrAModuleInPlaceOfATableIsRefused_data()
    {
        QTest::addColumn<QString>("definition");
        QTest::addColumn<QString>("says");
        QTest::newRow("generated") << "CREATE TABLE MORE (a, slow AS (length(hex(zeroblob(50000000)))))"
                                   << "\"MORE.slow\"";
        QTest::newRow("generated and stored") << "CREATE TABLE MORE (a, slow INT GENERATED ALWAYS AS (a + 1) STORED)"
                                              << "\"MORE.slow\"";
        QTest::newRow("module") << "CREATE VIRTUAL TABLE MORE USING fts5(a)"
                                << "is no table";
        QTest::newRow("module, written otherwise") << "create/**/virtual table MORE using rtree(id, a, b)"
                                                   << "is no table";
    }
    void aFormulaOrAModuleInPlaceOfATableIsRefused()
    {
        QFETCH(QString, definition);
        QFETCH(QString, says);
        const std::string path = record((std::string("programs of ") + QTest::currentDataTag() + ".db").c_str());
        {
            SQLite::Database database(path, SQLite::OPEN_READWRITE);
            try {
                database.exec(definition.toStdString());
            } catch (const SQLite::Exception& error) {
                QSKIP(error.what()); // an SQLite without this module
            }
        }
        for (const auto& open : std::vector<std::function<void()>>{
                 [&] { TraceReader reader(path); }, [&] { schemaOf(path); }, [&] { readActivities(path); },
                 [&] { queryTrace(path, "SELECT 1"); }, [&] { ExperimentStore store(path); }}) {
            const std::string error = errorOf(open);
            QVERIFY2(error.find(says.toStdString()) != std::string::npos, error.c_str());
        }
    }

    /// The names in the list of tables are the author's: only those in the definitions count.
    void aFormulaIsFoundUnderAFalseName()
    {
        const std::string path = record("falsename.db");
        {
            SQLite::Database database(path, SQLite::OPEN_READWRITE);
            database.exec("CREATE TABLE MORE (a, slow AS (a + 1))");
            database.exec("PRAGMA writable_schema = ON");
            database.exec(
                "UPDATE sqlite_master SET name = 'META', tbl_name = 'META', type = 'view' WHERE name = 'MORE'");
        }
        QVERIFY(!errorOf([&] { TraceReader reader(path); }).empty());
    }

    void tablesThatAreMultipliedEnd()
    {
        const std::string path = record("multiplied.db");
        SQLite::Database database = openTraceDatabase(path);
        std::string rows = "RECORDS a0";
        for (int i = 1; i < 12; ++i)
            rows += ", RECORDS a" + std::to_string(i);
        try {
            database.execAndGet("SELECT count(1) FROM " + rows);
            QFAIL("it is as good as without end");
        } catch (const SQLite::Exception& error) {
            const std::string said = errorOf([&] { rethrowTraceError(path, error); });
            QVERIFY2(said.find("more work than its size explains") != std::string::npos, said.c_str());
        }
        // The next statement has its own measure.
        for (int i = 0; i < 20; ++i)
            QVERIFY(database.execAndGet("SELECT sum(a.start) FROM RECORDS a, RECORDS b").getInt64() > 0);
    }

    /// Each page of the table says twenty times that the next one is below it: 21 to the 17th rows, which SQLite counts
    /// in one instruction and asks nobody.
    void aTableWhosePagesRepeatThemselvesEnds()
    {
        const std::string path = m_folder / "repeated.db";
        constexpr int size = 4096, levels = 17;
        int root = 0;
        {
            SQLite::Database database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
            database.exec("PRAGMA page_size = " + std::to_string(size));
            database.exec("CREATE TABLE T (x)");
            for (int i = 0; i < levels; ++i)
                database.exec("CREATE TABLE P" + std::to_string(i) + " (x)");
            database.exec("INSERT INTO P" + std::to_string(levels - 1) + " VALUES (1)");
            root = database.execAndGet("SELECT rootpage FROM sqlite_master WHERE name = 'T'").getInt();
            QCOMPARE(database.execAndGet("SELECT max(rootpage) FROM sqlite_master").getInt(), root + levels);
        }
        QFile file(QString::fromStdString(path));
        QVERIFY(file.open(QIODevice::ReadWrite));
        for (int page = root; page < root + levels; ++page) {
            QByteArray bytes(size, '\0');
            const auto put = [&](int at, int width, unsigned value) {
                for (int i = 0; i < width; ++i)
                    bytes[at + i] = static_cast<char>(value >> (8 * (width - 1 - i)));
            };
            constexpr int cells = 20, cell = 5; // a page and a key of one byte
            put(0, 1, 5);                       // an inner page of a table
            put(3, 2, cells);
            put(5, 2, size - cells * cell);
            put(8, 4, static_cast<unsigned>(page + 1));
            for (int i = 0; i < cells; ++i) {
                put(12 + 2 * i, 2, static_cast<unsigned>(size - (i + 1) * cell));
                put(size - (i + 1) * cell, 4, static_cast<unsigned>(page + 1));
                put(size - (i + 1) * cell + 4, 1, static_cast<unsigned>(i + 1));
            }
            QVERIFY(file.seek((page - 1) * size));
            QCOMPARE(file.write(bytes), size);
        }
        file.close();
        const std::string asked =
            errorOf([&] { queryTrace(path, "SELECT count(*) FROM T", {.time = std::chrono::milliseconds(50)}); });
        QVERIFY2(asked.find("stopped after 50 ms") != std::string::npos, asked.c_str());
        int looks = 0;
        const std::string cancelled =
            errorOf([&] { queryTrace(path, "SELECT count(*) FROM T", {}, {[&](double) { return ++looks < 3; }}); });
        QVERIFY2(cancelled.find("cancelled") != std::string::npos, cancelled.c_str());
        const std::string shown = errorOf([&] { schemaOf(path); });
        QVERIFY2(shown.find("more work than its size explains") != std::string::npos, shown.c_str());
    }

    void anUnknownOperationIsRefused_data()
    {
        QTest::addColumn<QString>("operation");
        for (const char* operation : {"X", "", "FF", "f"})
            QTest::newRow(*operation == 0 ? "none" : operation) << operation;
    }
    void anUnknownOperationIsRefused()
    {
        QFETCH(QString, operation);
        const std::string path = record((std::string("operation ") + QTest::currentDataTag() + ".db").c_str());
        QVERIFY(errorOf([&] { TraceReader reader(path); }).empty());
        SQLite::Database(path, SQLite::OPEN_READWRITE)
            .exec("UPDATE TASKS SET op = '" + operation.toStdString() + "' WHERE kind = 'compute' AND op = 'B'");
        const std::string error = errorOf([&] { TraceReader reader(path); });
        QVERIFY2(error.find("\"" + operation.toStdString() + "\" is no operation") != std::string::npos, error.c_str());
    }

    void anExperimentIsNotAddedToAFileWithTriggers()
    {
        const std::string path = m_folder / "experiment.db";
        ExperimentRecord record;
        record.losses = {1, 2};
        ExperimentStore(path).add(record);
        ExperimentStore(path).add(record);
        SQLite::Database database(path, SQLite::OPEN_READWRITE);
        QCOMPARE(database.execAndGet("SELECT count(*) FROM EXPERIMENT_LOSSES").getInt(), 4);
        database.exec("CREATE TRIGGER T AFTER INSERT ON EXPERIMENT_LOSSES BEGIN DELETE FROM EXPERIMENT_RUNS; END");
        const std::string error = errorOf([&] { ExperimentStore(path).add(record); });
        QVERIFY2(error.find("trigger \"T\"") != std::string::npos, error.c_str());
        QCOMPARE(database.execAndGet("SELECT count(*) FROM EXPERIMENT_RUNS").getInt(), 2);
    }

    void aStatementEndsAtItsTime()
    {
        const std::string path = record("time.db");
        const std::string error = errorOf([&] {
            queryTrace(path, std::string(endless) + "SELECT count(*) FROM n", {.time = std::chrono::milliseconds(50)});
        });
        QVERIFY2(error.find("stopped after 50 ms") != std::string::npos, error.c_str());
    }

    void aStatementEndsAtItsMemory()
    {
        const std::string path = record("memory.db");
        for (const char* sql : {"SELECT hex(zeroblob(50000000)) FROM n",  // within SQLite
                                "SELECT hex(zeroblob(100000)) FROM n"}) { // in the result
            const std::string error = errorOf([&] {
                queryTrace(path, std::string(endless) + sql, {.rows = 1'000'000, .bytes = std::int64_t{16} << 20});
            });
            QVERIFY2(error.find("more than 16 MiB of memory") != std::string::npos, error.c_str());
        }
        QVERIFY(errorOf([&] { queryTrace(path, "SELECT * FROM RECORDS"); }).empty()); // the limit is gone again
    }

    void aLockedTraceSaysSo()
    {
        const std::string path = record("locked.db");
        SQLite::Database other(path, SQLite::OPEN_READWRITE);
        other.exec("PRAGMA journal_mode = DELETE");
        other.exec("BEGIN EXCLUSIVE");
        QElapsedTimer clock;
        clock.start();
        const std::string error = errorOf([&] { TraceReader reader(path); });
        QVERIFY2(clock.elapsed() < 15'000, "half a second is waited; it was twenty once"); // of a loaded machine
        QVERIFY2(error.find("locked") != std::string::npos, error.c_str());
    }

    void nobodyWaitsForALockTwice()
    {
        // What only asks what a file is says that it is locked; with "no" for an answer the next would wait again.
        const std::string path = record("lockedonce.db");
        SQLite::Database other(path, SQLite::OPEN_READWRITE);
        other.exec("PRAGMA journal_mode = DELETE");
        other.exec("BEGIN EXCLUSIVE");
        for (bool (*ask)(const std::string&) : {holdsActivities, isTrace, isForeignTrace}) {
            const std::string error = errorOf([&] { (void)ask(path); });
            QVERIFY2(error.find("locked") != std::string::npos, error.c_str());
        }
    }

    void aPipeInPlaceOfALogIsNotWaitedFor_data()
    {
        QTest::addColumn<QString>("ending");
        for (const std::string& ending : databaseCompanions())
            QTest::newRow(ending.c_str()) << QString::fromStdString(ending);
    }
    void aPipeInPlaceOfALogIsNotWaitedFor()
    {
        QFETCH(QString, ending);
        const std::string path = record(("piped" + ending.toStdString() + ".db").c_str());
        QCOMPARE(::mkfifo((path + ending.toStdString()).c_str(), 0600), 0);
        const std::string error = errorOf([&] { TraceReader reader(path); });
        QVERIFY2(error.find("not a regular file") != std::string::npos, error.c_str());
    }
};

PIPEWRIGHT_TEST(TestHostileTrace, QCoreApplication)
#include "tst_hostiletrace.moc"
