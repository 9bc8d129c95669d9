// SPDX-License-Identifier: GPL-3.0-or-later
// query, explain and the import of traces as a person calls them.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright::test;

class TestTraceCommands : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

    /// Arguments that hold blanks.
    Outcome runWith(const QStringList& arguments) const
    {
        QProcess process;
        process.setWorkingDirectory(m_work.path("."));
        process.start(PIPEWRIGHT_PROGRAM, arguments);
        return Workplace::finish(process);
    }

private Q_SLOTS:
    void initTestCase()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 -o design.json").code, 0);
        const Outcome outcome =
            m_work.run("run design.json --backend host --maths timed --clock virtual --steps 3 -o run.db");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
    }

    void aTraceAnswersQuestions()
    {
        const Outcome answer =
            runWith({"query", "run.db", "SELECT step, end - start AS length FROM STEPS ORDER BY step", "--json"});
        QVERIFY2(answer.code == 0, qPrintable(answer.errors));
        QCOMPARE(answer.json()["columns"].toArray(), (QJsonArray{"step", "length"}));
        QCOMPARE(answer.json()["rows"].toArray().size(), 3);
        const Outcome limited = runWith({"query", "run.db", "SELECT * FROM RECORDS", "--limit", "2", "--json"});
        QCOMPARE(limited.json()["rows"].toArray().size(), 2);
        QVERIFY(limited.json()["cut"].toBool());
        const QJsonArray tables = runWith({"query", "run.db", "--schema", "--json"}).json()["tables"].toArray();
        QVERIFY(tables.size() >= 6);
    }

    void nothingCanBeChangedByAQuery_data()
    {
        QTest::addColumn<QString>("sql");
        for (const char* sql :
             {"DELETE FROM RECORDS", "DROP TABLE STEPS", "ATTACH 'other.db' AS o", "PRAGMA journal_mode = DELETE",
              "SELECT load_extension('x')", "SELECT 1; SELECT 2", "", ";", "SELECT nothing FROM nowhere", "BEGIN"})
            QTest::newRow(sql) << sql;
    }

    void nothingCanBeChangedByAQuery()
    {
        QFETCH(QString, sql);
        const QByteArray before = m_work.read("run.db");
        const Outcome outcome = runWith({"query", "run.db", sql});
        QCOMPARE(outcome.code, 2);
        QVERIFY(outcome.errors.contains("error:"));
        QCOMPARE(m_work.read("run.db"), before);
    }

    void aStepIsExplained()
    {
        const Outcome outcome = m_work.run("explain run.db --what-if F1=5ms --json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        const QJsonObject makespan = outcome.json()["makespan"].toObject();
        QCOMPARE(makespan["predicted_ns"].toDouble(), makespan["measured_ns"].toDouble());
        QVERIFY(outcome.json()["what_if"].toObject()["after_ns"].toDouble() > makespan["measured_ns"].toDouble());
        QVERIFY(m_work.run("explain run.db").output.contains("critical path"));
        QVERIFY(m_work.run("compare design.json run.db --json").json()["causes"].isArray());
        QCOMPARE(m_work.run("explain run.db --what-if nonsense").code, 2);
        QCOMPARE(m_work.run("explain nothing.db").code, 2);
    }

    void aStepIsChosenByNumberMedianOrTypical()
    {
        for (const char* step : {"1", "median", "typical"}) {
            const Outcome outcome = m_work.run(QStringLiteral("compare design.json run.db --json --step %1").arg(step));
            QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
            QCOMPARE(outcome.json()["steps"].toObject()["count"].toInt(), 2);
            QCOMPARE(outcome.json()["makespan"].toObject()["error"].toDouble(), 0.0);
        }
        QCOMPARE(m_work.run("compare design.json run.db --step typical --json").json()["step"].toString(),
                 QString("typical"));
        QCOMPARE(m_work.run("compare design.json run.db --step first").code, 2);
        QCOMPARE(m_work.run("explain run.db --step 99").code, 2);
    }

    void aTraceWithoutADesignIsExplainedByItsDevices()
    {
        QByteArray events;
        int correlation = 0;
        const auto add = [&](const QByteArray& cat, const QByteArray& name, int pid, int tid, int from, int length,
                             const QByteArray& args) {
            events += QByteArray(events.isEmpty() ? "" : ",") + "{\"ph\":\"X\",\"cat\":\"" + cat + "\",\"name\":\""
                      + name + "\",\"pid\":" + QByteArray::number(pid) + ",\"tid\":" + QByteArray::number(tid)
                      + ",\"ts\":" + QByteArray::number(from) + ",\"dur\":" + QByteArray::number(length) + ",\"args\":{"
                      + args + "}}";
        };
        for (int step = 0; step < 2; ++step) {
            add("user_annotation", "ProfilerStep#" + QByteArray::number(step + 5), 100, 1, step * 1000, 1000, "");
            for (int device = 0; device < 2; ++device) {
                const QByteArray on = "\"correlation\":" + QByteArray::number(++correlation);
                add("cuda_runtime", "cudaLaunchKernel", 100, 1, step * 1000 + 400, 1, on);
                add("kernel", "gemm", device, 7, step * 1000 + 450, device == 0 ? 200 : 500,
                    on + ",\"stream\":7,\"device\":" + QByteArray::number(device));
            }
        }
        m_work.write("kineto.json",
                     "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0}],\"traceEvents\":[" + events + "]}");
        QCOMPARE(m_work.run("import kineto.json -o kineto.db").code, 0);
        const Outcome outcome = m_work.run("explain kineto.db --json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        QCOMPARE(outcome.json()["straggler"].toObject()["device"].toInt(), 1);
        QCOMPARE(outcome.json()["per_device"].toArray()[0].toObject()["computing_ns"].toDouble(), 400e3);
        QCOMPARE(outcome.json()["steps"].toArray().size(), 2);
        const Outcome one = m_work.run("explain kineto.db --step 6 --json");
        QCOMPARE(one.json()["stretch"].toString(), QString("ProfilerStep#6"));
        QCOMPARE(one.json()["per_device"].toArray()[1].toObject()["computing_ns"].toDouble(), 500e3);
        QVERIFY(m_work.run("explain kineto.db").output.contains("GPU 1 holds up the others"));
        QCOMPARE(m_work.run("explain kineto.db --step 9").code, 2);
        QCOMPARE(m_work.run("explain kineto.db --what-if device1=0.5x").code, 2);

        // A report of it, and one of a recording, by itself or over a design; notes beside the trace are in it.
        m_work.write("kineto.db.notes.json", R"({"notes": [{"start_ns": 0, "end_ns": 5, "text": "look here"}]})");
        const Outcome report = m_work.run("export kineto.db --to html -o kineto.html --json");
        QVERIFY2(report.code == 0, qPrintable(report.errors));
        for (const char* part : {"<svg", "GPU 1 holds up the others", "look here", "ProfilerStep#6"})
            QVERIFY2(m_work.read("kineto.html").contains(part), part);
        QCOMPARE(m_work.run("export kineto.db --to html -o kineto.html").code, 2); // the file exists
        for (const char* command : {"export run.db --to html -o own.html",
                                    "export design.json --to html --trace run.db -o own.html --force"}) {
            const Outcome own = m_work.run(command);
            QVERIFY2(own.code == 0, qPrintable(own.errors));
            QVERIFY(m_work.read("own.html").contains("The step ran as predicted"));
        }
        QCOMPARE(m_work.run("export design.json --to html -o x.html").code, 2);
        QCOMPARE(m_work.run("export kineto.json --to html -o x.html").code, 2);
    }

    void aForeignTraceIsImportedAndCompared()
    {
        QByteArray events;
        double time = 0;
        // One device's view is enough for every block to be named; times follow the order of the list.
        for (const char* action : {"0F0", "1F0", "1B0", "0B0", "0F1", "1F1", "1B1", "0B1", "0F2", "1F2", "1B2", "0B2",
                                   "0F3", "1F3", "1B3", "0B3"}) {
            events += QByteArray(events.isEmpty() ? "" : ",")
                      + "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"PP:" + action
                      + "\",\"pid\":1,\"tid\":1,\"ts\":" + QByteArray::number(time) + ",\"dur\":900.5}";
            time += 1000;
        }
        m_work.write("torch.json", "{\"schemaVersion\":1,\"traceEvents\":[" + events
                                       + ",{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":1}]}");
        const Outcome imported = m_work.run("import torch.json -o torch.db --json");
        QVERIFY2(imported.code == 0, qPrintable(imported.errors));
        QCOMPARE(imported.json()["blocks"].toInt(), 16);
        QCOMPARE(imported.json()["skipped"].toArray().size(), 1);
        QVERIFY(imported.errors.contains("ends without their beginning"));
        QCOMPARE(m_work.run("import torch.json -o torch.db").code, 2); // the file exists
        const Outcome compared = m_work.run("compare design.json torch.db --json");
        QVERIFY2(compared.code == 0, qPrintable(compared.errors));
        QCOMPARE(compared.json()["blocks"].toObject()["matched"].toInt(), 16);
        QCOMPARE(m_work.run("explain torch.db --design design.json").code, 0);
        const Outcome bare = m_work.run("explain torch.db"); // neither a design nor a device
        QCOMPARE(bare.code, 2);
        QVERIFY(bare.errors.contains("holds no design"));
        QCOMPARE(m_work.run("import design.json -o x.db").code, 2);
        m_work.write("bad.gz", QByteArray("\x1f\x8b\x08\x00garbage", 11));
        QCOMPARE(m_work.run("import bad.gz -o x.db").code, 2);
        QVERIFY(m_work.read("x.db").isEmpty());
    }
};

PIPEWRIGHT_TEST(TestTraceCommands, QCoreApplication)
#include "tst_tracecommands.moc"
