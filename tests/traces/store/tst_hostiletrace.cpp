// SPDX-License-Identifier: GPL-3.0-or-later
// A trace may come from a stranger. Whatever its schema holds, reading it ends, and says what is wrong.
#include "testmain.h"
#include "traces/import/traceimport.h"
#include "traces/store/activitystore.h"
#include "traces/store/database.h"
#include "traces/store/query.h"
#include "traces/store/recording.h"
#include "traces/store/tracereader.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <QTest>

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
        const std::string error = errorOf([&] { TraceReader reader(path); });
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
