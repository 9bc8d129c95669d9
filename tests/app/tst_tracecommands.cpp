// SPDX-License-Identifier: GPL-3.0-or-later
// query, explain and the import of traces as a person calls them.
#include "app/program.h"
#include "testmain.h"

#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMap>
#include <QRegularExpression>
#include <QTest>
#include <SQLiteCpp/SQLiteCpp.h>

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

    void aLongValueDoesNotWidenOtherRows()
    {
        const Outcome answer = runWith({"query", "run.db",
                                        "SELECT 1 AS a, printf('%.*c', 300, 'x') AS name, 'c' AS b "
                                        "UNION ALL SELECT 2, 'short', 'd'"});
        QCOMPARE(answer.code, 0);
        QVERIFY(answer.output.contains(QString(300, QLatin1Char('x'))));
        int others = 0;
        for (const QString& line : answer.output.split('\n'))
            if (!line.contains("xxx")) {
                QVERIFY2(line.size() < 100, qPrintable(line));
                ++others;
            }
        QVERIFY(others >= 2);
    }

    void everyCommandSaysThatBlocksAreMissing()
    {
        QVERIFY(QFile::copy(m_work.path("run.db"), m_work.path("less.db")));
        {
            SQLite::Database database(m_work.path("less.db").toStdString(), SQLite::OPEN_READWRITE);
            database.exec(
                "DELETE FROM RECORDS WHERE taskId IN (SELECT taskId FROM TASKS WHERE label IN ('F1.2', 'B0.1'))");
        }
        for (const char* words :
             {"explain less.db", "compare design.json less.db", "calibrate design.json less.db --force -o less.json",
              "export less.db --to chrome --force -o less.trace", "export less.db --to html --force -o less.html",
              "render design.json --trace less.db --force -o less.svg",
              "new gpipe --costs-from less.db --force -o g.json"}) {
            const Outcome outcome = m_work.run(words);
            const QString said = outcome.output + outcome.errors;
            QVERIFY2(said.contains("2 of 16 blocks were not measured in step "), qPrintable(words + said));
            QCOMPARE(outcome.code, QString(words).startsWith("compare") ? 1 : 0);
        }
        const QJsonObject explained = m_work.run("explain less.db --json").json();
        QCOMPARE(explained["unmatched"].toInt(), 2);
        QCOMPARE(explained["causes"].toArray().size(), 1);
        QVERIFY(!explained["costs"]["source"].toString().isEmpty());
        QCOMPARE(explained["causes"][0]["cause"].toString(), QString("unexplained"));
        QCOMPARE(m_work.run("explain run.db --json").json()["unmatched"].toInt(), 0);
    }

    void aTraceInADesignsPlaceIsNamedSo()
    {
        for (const char* words : {"predict run.db", "check run.db", "compare run.db design.json",
                                  "render run.db -o r.svg", "run run.db --backend host --steps 1 -o again.db"}) {
            const Outcome outcome = m_work.run(words);
            QCOMPARE(outcome.code, 2);
            QVERIFY2(outcome.errors.startsWith("run.db: error: is a recorded trace, not a design (give the design "),
                     qPrintable(outcome.errors));
        }
    }

    void aKilledTraceIsNamedSo()
    {
        // How much of it was written before it was killed depends on the moment.
        m_work.run("run design.json --backend host --maths timed --steps 60 --inject killed:0:50:0 -o killed.db");
        static const QRegularExpression finished(QStringLiteral("holds ([1-9]|[1-4][0-9]|50) finished step"));
        for (const char* words :
             {"explain killed.db", "compare design.json killed.db",
              "calibrate design.json killed.db --busy-machine -o calibrated.json", "explain killed.db --json"}) {
            const Outcome outcome = m_work.run(words);
            QCOMPARE(outcome.code, 0);
            QVERIFY2(outcome.errors.contains("killed.db: warning: the trace is not complete")
                         && outcome.errors.contains(finished),
                     qPrintable(outcome.errors));
        }
        QCOMPARE(m_work.run("explain run.db").errors, QString());
        // Only its file, without its log.
        m_work.write("copy.db", m_work.read("killed.db"));
        const Outcome copy = m_work.run("explain copy.db");
        QVERIFY2(copy.errors.contains("copy.db-wal, with what was recorded last, belongs beside it"),
                 qPrintable(copy.errors));
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

    void textsCallDevicesWhatTheDesignerCallsThem()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 --forward 10ms -o slow.json").code, 0);
        const QString compared = m_work.run("compare slow.json run.db").output;
        const QString explained = m_work.run("explain run.db --design slow.json").output;
        for (const QString& text : {compared, explained}) {
            // Nobody said what these devices are.
            QVERIFY2(text.contains("blocks on device 0") && text.contains("\ndevice 1 "), qPrintable(text));
            QVERIFY2(!text.contains("GPU"), qPrintable(text));
        }
        // JSON has numbers.
        const QJsonObject json = m_work.run("explain run.db --design slow.json --json").json();
        QCOMPARE(json["per_device"].toArray()[1].toObject()["device"].toInt(-1), 1);
        QVERIFY(json["causes"].toArray()[0].toObject()["text"].toString().contains(" on device "));
        // Threads of a CPU are no GPUs.
        QCOMPARE(
            m_work.run("new 1f1b --devices 2 --microbatches 4 --model byte-mlp --cluster host-pair -o cpu.json").code,
            0);
        QCOMPARE(m_work.run("run cpu.json --backend host --maths timed --clock virtual --steps 2 -o cpu.db").code, 0);
        QVERIFY(m_work.run("explain cpu.db").output.contains("\nCPU 1 "));
        QCOMPARE(
            m_work.run("new 1f1b --devices 2 --microbatches 4 --model byte-gpt --cluster h200-node -o gpu.json").code,
            0);
        QCOMPARE(m_work.run("run gpu.json --backend host --maths timed --clock virtual --steps 2 -o gpu.db").code, 0);
        QVERIFY(m_work.run("explain gpu.db").output.contains("\nGPU 1 "));
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

    void ratesAreOfTheModelThatRan()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 --microbatch-size 8 -o other.json").code, 0);
        const auto rates = [&](const char* more) {
            const Outcome outcome = m_work.run(QStringLiteral("explain run.db --json") + more);
            return outcome.code == 0 ? outcome.json()["rates"].toArray() : QJsonArray();
        };
        const auto unitsOf = [](const QJsonArray& rates) {
            double amount = 0;
            for (const auto& rate : rates)
                amount += rate.toObject()["unit"].toString() == "FLOP/s" ? rate.toObject()["amount"].toDouble() : 0;
            return amount;
        };
        QVERIFY(unitsOf(rates("")) > 0);
        QCOMPARE(unitsOf(rates(" --design other.json")), unitsOf(rates("")));
    }

    void whatTheDevicesDidIsNotSharedOutOverTheHostsTime()
    {
        // Ten seconds of the host, in which the device works for 30 ms.
        const auto slice = [](const char* cat, const QByteArray& name, int pid, int from, int length,
                              const char* args) {
            return QByteArray("{\"ph\":\"X\",\"cat\":\"") + cat + "\",\"name\":\"" + name
                   + "\",\"pid\":" + QByteArray::number(pid) + ",\"tid\":1,\"ts\":" + QByteArray::number(from)
                   + ",\"dur\":" + QByteArray::number(length) + ",\"args\":{" + args + "}}";
        };
        const QByteArray kernel = "gemm_" + QByteArray(300, 'x');
        m_work.write("long.json",
                     "{\"schemaVersion\":1,\"traceEvents\":[" + slice("user_annotation", "main", 9, 0, 10'000'000, "")
                         + "," + slice("kernel", kernel, 0, 5'000'000, 10'000, "\"device\":0,\"stream\":1") + ","
                         + slice("kernel", "short", 0, 5'020'000, 10'000, "\"device\":0,\"stream\":1") + "]}");
        QCOMPARE(m_work.run("import long.json -o long.db").code, 0);
        const auto computing = [&](const QString& more) {
            const QJsonObject object = m_work.run("explain long.db --json" + more).json();
            const double length = object["end_ns"].toDouble() - object["start_ns"].toDouble();
            return object["per_device"].toArray()[0].toObject()["computing_ns"].toDouble() / length;
        };
        QCOMPARE(computing(""), 20.0 / 30);
        QCOMPARE(computing(" --from 0s --to 10s"), 20e-3 / 10);
        QCOMPARE(computing(" --from 5s --to 5.01s"), 1.0);
        QVERIFY(m_work.run("explain long.db").output.contains("the devices' activity"));
        QCOMPARE(m_work.run("explain long.db --from 11s").code, 2);
        QCOMPARE(m_work.run("explain long.db --from 6s --to 5s").code, 2);
        QCOMPARE(m_work.run("explain run.db --from 1ms").code, 2); // whole steps only
        QCOMPARE(m_work.run("export long.db --to html -o long.html --from 5.015s").code, 0);
        const QByteArray page = m_work.read("long.html");
        QVERIFY(page.contains("5.015s to the end") && page.contains("short") && !page.contains(kernel));

        // One long name does not push every row's numbers out of sight.
        const Outcome rows = runWith({"query", "long.db", "SELECT value, id FROM StringIds ORDER BY length(value)"});
        QVERIFY(rows.output.contains(kernel));
        for (const QString& line : rows.output.split('\n'))
            QVERIFY2(line.contains(kernel) || line.size() < 60, qPrintable(line));

        // It has kernels and no blocks: who compares is told why.
        const Outcome compared = m_work.run("compare design.json long.db");
        QVERIFY2(compared.errors.contains("no block of a schedule was recognised"), qPrintable(compared.errors));
    }

    void aFolderOfRanksIsImported()
    {
        QVERIFY(QDir(m_work.path(".")).mkdir("ranks"));
        QCOMPARE(m_work.run("import ranks -o folder.db").code, 2);
        for (int rank = 0; rank < 3; ++rank)
            m_work.write(QStringLiteral("ranks/rank%1.json").arg(rank),
                         R"({"schemaVersion":1,"distributedInfo":{"rank":)" + QByteArray::number(rank)
                             + R"(},"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]})");
        m_work.write("ranks/notes.txt", "no trace");
        const Outcome outcome = m_work.run("import ranks -o folder.db --json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        QCOMPARE(outcome.json()["ranks"].toInt(), 3);
        m_work.write("again.json", m_work.read("ranks/rank0.json"));
        QVERIFY(m_work.run("import ranks again.json -o twice.db").errors.contains("more than one file"));
    }

    void howMuchACompressedTraceMayTakeCanBeRaised()
    {
        m_work.write("padded.json", R"({"schemaVersion":1,"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,)"
                                    R"("dur":1})"
                                        + QByteArray(3 << 20, ' ') + "]}");
        QCOMPARE(m_work.shell("gzip padded.json").code, 0);
        const Outcome refused = m_work.run("import padded.json.gz -o padded.db --size-limit 1MiB");
        QCOMPARE(refused.code, 2);
        QVERIFY2(refused.errors.contains("--size-limit"), qPrintable(refused.errors));
        QVERIFY(!QFile::exists(m_work.path("padded.db")));
        QCOMPARE(m_work.run("import padded.json.gz -o padded.db --size-limit 4MiB").code, 0);
    }

    void anEmptyFileIsSaidToBeEmpty_data()
    {
        QTest::addColumn<QString>("command");
        for (const char* command : {"import empty.csv -o x.json", "import blank.json -o x.db", "predict empty.csv",
                                    "check blank.json", "explain empty.csv"})
            QTest::newRow(command) << command;
    }

    void anEmptyFileIsSaidToBeEmpty()
    {
        QFETCH(QString, command);
        m_work.write("empty.csv", "");
        m_work.write("blank.json", " \n\n");
        const Outcome outcome = m_work.run(command);
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("empty file") || outcome.errors.contains("is empty"),
                 qPrintable(outcome.errors));
    }

    void whatCountsNowhereIsNamedAgainByExplain()
    {
        m_work.write("npu.json", R"([
            {"ph":"M","name":"process_name","pid":31,"tid":0,"args":{"name":"Ascend Hardware"}},
            {"ph":"X","name":"MatMulV2","pid":31,"tid":2,"ts":10,"dur":50.25},
            {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":0,"dur":5,"args":{"device":0,"stream":7}},
            {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":20,"dur":5,"args":{"device":0,"stream":7}}])");
        const char* const unknown = "50.25 us counts as nobody's work: Ascend Hardware";
        QVERIFY(m_work.run("import npu.json -o npu.db").errors.contains(unknown));
        const Outcome text = m_work.run("explain npu.db");
        QVERIFY(text.errors.contains(unknown));
        QVERIFY(text.output.contains("not known")); // nobody knows when the kernels were launched
        const Outcome outcome = m_work.run("explain npu.db --json");
        QCOMPARE(outcome.code, 0);
        const QJsonObject json = outcome.json();
        QVERIFY(json["warnings"].toArray().at(0).toString().contains(unknown));
        const QJsonObject device = json["per_device"].toArray().at(0).toObject();
        QCOMPARE(device["not_known_ns"].toInt(), 15'000);
        QCOMPARE(device["waiting_ns"].toInt(), 0);
    }

    void aRecordingIsExportedByItself()
    {
        const Outcome outcome = m_work.run("export run.db --to perfetto -o run.perfetto-trace");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        QCOMPARE(m_work.run("export design.json --trace run.db --to perfetto -o both.perfetto-trace").code, 0);
        QCOMPARE(m_work.read("run.perfetto-trace"), m_work.read("both.perfetto-trace"));
        QCOMPARE(m_work.run("export run.db --to pytorch-csv -o run.csv").code, 0);
    }

    void anImportedTraceIsExportedByItselfWithItsRanksOnOneClock()
    {
        // Two ranks whose clocks began 5 ms apart; each waits for a collective of the other.
        for (int rank = 0; rank < 2; ++rank)
            m_work.write(
                QStringLiteral("rank%1.json").arg(rank),
                QStringLiteral(R"({"distributedInfo":{"rank":%1,"world_size":2},"baseTimeNanoseconds":%2,"traceEvents":[
{"ph":"X","name":"matmul","cat":"cpu_op","pid":7,"tid":1,"ts":%3,"dur":100},
{"ph":"X","name":"addmm","cat":"cpu_op","pid":7,"tid":1,"ts":%4,"dur":50}]})")
                    .arg(rank)
                    .arg(rank == 0 ? "1000000000" : "1005000000")
                    .arg(rank == 0 ? "1000" : "2000")
                    .arg(rank == 0 ? "1010" : "2010")
                    .toUtf8());
        const Outcome imported = m_work.run("import rank0.json rank1.json -o ranks.db");
        QVERIFY2(imported.code == 0, qPrintable(imported.errors));
        const Outcome chrome = m_work.run("export ranks.db --to chrome -o ranks.json");
        QVERIFY2(chrome.code == 0, qPrintable(chrome.errors));
        const QJsonArray events = QJsonDocument::fromJson(m_work.read("ranks.json")).object()["traceEvents"].toArray();
        QMap<QString, double> starts;
        QStringList processes;
        for (const QJsonValue event : events) {
            if (event["ph"].toString() == "X")
                starts[event["pid"].toVariant().toString() + event["name"].toString()] = event["ts"].toDouble();
            else if (event["name"].toString() == "process_name")
                processes << event["args"]["name"].toString();
        }
        QCOMPARE(starts.size(), 4);
        QVERIFY2(processes.size() == 2 && processes[0].startsWith("rank 0") && processes[1].startsWith("rank 1"),
                 qPrintable(processes.join(" | ")));
        QCOMPARE(starts["1matmul"], 0.0);
        QCOMPARE(starts["1addmm"], 10.0);
        QCOMPARE(starts["2matmul"], 6000.0); // 5 ms of the clocks, 1 ms of its own
        // It can be read again.
        QCOMPARE(m_work.run("import ranks.json -o again.db").code, 0);
        // As Perfetto's, all of it and a stretch.
        const Outcome perfetto = m_work.run("export ranks.db --to perfetto -o ranks.perfetto-trace");
        QVERIFY2(perfetto.code == 0, qPrintable(perfetto.errors));
        const QByteArray whole = m_work.read("ranks.perfetto-trace");
        for (const char* text : {"rank 0", "rank 1", "matmul", "addmm"})
            QVERIFY2(whole.contains(text), text);
        QCOMPARE(m_work.run("export ranks.db --to perfetto --from 5ms -o end.perfetto-trace").code, 0);
        QVERIFY(m_work.read("end.perfetto-trace").count("matmul") == 1 && whole.count("matmul") == 2);
        // What is of a design needs one.
        const Outcome refused = m_work.run("export ranks.db --to blocks-csv -o x.csv");
        QCOMPARE(refused.code, 2);
        QVERIFY2(refused.errors.contains("holds no design"), qPrintable(refused.errors));
        const Outcome raw = m_work.run("export rank0.json --to perfetto -o x.trace");
        QCOMPARE(raw.code, 2);
        QVERIFY2(raw.errors.contains("pipewright import rank0.json"), qPrintable(raw.errors));
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
        // The design's model is the built-in one, which PyTorch did not train: no rate is counted by its work.
        const Outcome explained = m_work.run("explain torch.db --design design.json --json");
        QCOMPARE(explained.code, 0);
        QVERIFY(!explained.output.contains("matrix units"));
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 --model llama-3-8b -o named.json").code, 0);
        QVERIFY(m_work.run("explain torch.db --design named.json --json").output.contains("matrix units"));
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
