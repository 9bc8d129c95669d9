// SPDX-License-Identifier: GPL-3.0-or-later
// Runs as a person does them, from a design to a calibrated one, and runs that end before they are done.
#include "app/program.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QTest>
#include <QThread>

#include <SQLiteCpp/SQLiteCpp.h>

#include <csignal>
#include <sys/stat.h>

using namespace pipewright;
using namespace pipewright::test;

class TestRuns : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

    std::string trace(const QString& name) const { return m_work.path(name).toStdString(); }

    /// Starts a run that would take for ever, and returns when its first step is done.
    std::unique_ptr<QProcess> startEndlessRun(const QString& traceName) const
    {
        m_work.run("new zb-h1 --devices 2 --microbatches 4 --saved 1MiB -o long.json --force");
        auto process =
            m_work.start("run long.json --backend host --maths timed --steps 1000000 --progress json -o " + traceName);
        process->setReadChannel(QProcess::StandardError);
        while (!process->canReadLine() && process->waitForReadyRead(60'000)) {
        }
        return process;
    }

    /// A second is promised; how much of one a loaded machine gives the process is not.
    static Outcome outcomeOfSignal(QProcess& process, int signal)
    {
        QElapsedTimer clock;
        clock.start();
        ::kill(static_cast<pid_t>(process.processId()), signal);
        Outcome outcome = Workplace::finish(process);
        if (clock.elapsed() > 20'000)
            QTest::qFail("the signal was not answered within 20 s", __FILE__, __LINE__);
        return outcome;
    }

private Q_SLOTS:
    void aSlowedDeviceIsSlowOnTheVirtualClockToo()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 3 --microbatches 4 --force -o slowed.json").code, 0);
        const QString run = "run slowed.json --backend host --maths timed --clock virtual --steps 3 --force -o slow.db "
                            "--json --inject slows:1:1:0:100us";
        const QJsonArray steps = m_work.run(run).json()["step_ns"].toArray();
        QCOMPARE(steps.size(), 3);
        QVERIFY(steps[1].toDouble() > steps[0].toDouble() + 500'000);
        QCOMPARE(steps[2], steps[0]); // only the second step was slowed
    }

    /// What tied embeddings share is scaled with the rest.
    void smallMemoryScalesTakeTiedEmbeddings()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 --force -o tied.json").code, 0);
        for (const char* scale : {"1", "0.1", "0.001"}) {
            const Outcome run =
                m_work.run(QString("run tied.json --backend host --maths timed --clock virtual --steps 1 "
                                   "--check-memory --force -o tied.db --json --memory-scale ")
                           + scale);
            QVERIFY2(run.code == 0, qPrintable(run.errors));
            QCOMPARE(run.json()["peak_bytes"], run.json()["predicted_peak_bytes"]);
        }
    }

    void aDesignIsMadeRunComparedAndCalibrated()
    {
        // The virtual clock makes the measurement exact: what the backend does is what was predicted.
        QCOMPARE(m_work.run("new zb-h1 --devices 4 --microbatches 8 --forward 3ms --transfer 200us -o first.json").code,
                 0);
        const Outcome run =
            m_work.run("run first.json --backend host --maths timed --clock virtual --steps 3 -o first.db --json");
        // A run needs no trace, when that is said.
        const QString untraced = "run first.json --backend host --maths timed --clock virtual --steps 1 --json";
        QCOMPARE(m_work.run(untraced + " --record nothing").json()["trace"].toString(), QString());
        for (const char* wrong : {"", " --record nothing -o none.db", " --record all -o none.db"})
            QVERIFY2(m_work.run(untraced + wrong).code == 2, wrong);
        QVERIFY2(run.code == 0, qPrintable(run.errors));
        const QJsonObject result = run.json();
        QCOMPARE(result["backend"].toString(), "host");
        QCOMPARE(result["devices"].toInt(), 4);
        QCOMPARE(result["steps"].toInt(), 3);
        QCOMPARE(result["step_ns"].toArray().size(), 3);
        QCOMPARE(result["loss"].toArray().size(), 3);
        QCOMPARE(result["dropped_records"].toInt(-1), 0);
        QCOMPARE(result["trace"].toString(), "first.db");

        const Outcome compare = m_work.run("compare first.json first.db --tolerance 0.001 -o first.svg --json");
        QVERIFY2(compare.code == 0, qPrintable(compare.errors));
        const QJsonObject comparison = compare.json();
        QCOMPARE(comparison["makespan"]["error"].toDouble(1), 0.0);
        QCOMPARE(comparison["blocks"]["matched"].toInt(), 96);
        QCOMPARE(comparison["blocks"]["unmatched"].toInt(-1), 0);
        QCOMPARE(comparison["blocks"]["start_error"]["p95"].toDouble(1), 0.0);
        const QJsonArray devices = comparison["per_device"].toArray();
        QCOMPARE(devices.size(), 4);
        for (const QJsonValue device : devices)
            QCOMPARE(device.toObject()["peak_bytes"].toObject()["error"].toDouble(1), 0.0);
        QVERIFY(m_work.read("first.svg").contains("<svg"));

        QCOMPARE(m_work.run("calibrate first.json first.db --busy-machine -o second.json").code, 0);
        QVERIFY(m_work.read("second.json").contains("measured: first.db"));
        QCOMPARE(m_work.run("compare second.json first.db --tolerance 0.001").code, 0);
        QCOMPARE(m_work.run("run second.json --backend host --maths timed --clock virtual --steps 2 -o second.db").code,
                 0);
        QCOMPARE(m_work.run("compare second.json second.db --tolerance 0.001").code, 0);
        QCOMPARE(m_work.run("render second.json --trace second.db -o second.svg").code, 0);
    }

    void replicasPairsAndPiecesTrainFromTheCommandLine_data()
    {
        QTest::addColumn<QString>("family");
        for (const char* family : {"chimera", "dualpipe", "dualpipe-v", "seq1f1b"})
            QTest::newRow(family) << QString(family);
    }
    void replicasPairsAndPiecesTrainFromTheCommandLine()
    {
        QFETCH(QString, family);
        const QString make =
            "new " + family + " --devices 4 --microbatches 8 --sequence 16 --microbatch-size 1 --force -o way.json";
        QCOMPARE(m_work.run(make).code, 0);
        const Outcome run = m_work.run("run way.json --backend host --steps 2 --check-memory --force -o way.db --json");
        QVERIFY2(run.code == 0, qPrintable(run.errors));
        const QJsonObject result = run.json();
        QVERIFY(result["gradient_check"]["bit_equal"].toBool());
        QCOMPARE(result["peak_bytes"].toArray(), result["predicted_peak_bytes"].toArray());
        const Outcome compare = m_work.run("compare way.json way.db --json");
        QVERIFY2(compare.code == 0, qPrintable(compare.errors));
        const QJsonObject comparison = compare.json();
        QCOMPARE(comparison["blocks"]["unmatched"].toInt(-1), 0);
        const QJsonArray devices = comparison["per_device"].toArray();
        QCOMPARE(devices.size(), 4);
        // The V has the embedding and the tied head on device 0: one matrix on GPUs, and two in a run here, which says
        // so.
        const bool copiesHead = family == "dualpipe-v";
        QCOMPARE(run.errors.contains("one matrix in the prediction, and two here: 512 KiB more"), copiesHead);
        for (int d = 0; d < devices.size(); ++d) {
            const QJsonObject peak = devices[d].toObject()["peak_bytes"].toObject();
            QCOMPARE(peak["measured"].toInteger() - peak["predicted"].toInteger(),
                     copiesHead && d == 0 ? 512 * 1024 : 0);
        }
    }

    void trainingIsBitEqualAndItsMemoryIsThePredictedOne()
    {
        QCOMPARE(
            m_work.run("new 1f1b --devices 2 --microbatches 2 --sequence 16 --microbatch-size 1 -o train.json").code,
            0);
        const Outcome run = m_work.run("run train.json --backend host --steps 2 -o train.db --progress json --json");
        QVERIFY2(run.code == 0, qPrintable(run.errors));
        const QJsonObject result = run.json();
        QCOMPARE(result["gradient_check"]["reference"].toString(), "sequential");
        QVERIFY(result["gradient_check"]["bit_equal"].toBool());
        QCOMPARE(result["allocated_bytes"].toArray().size(), 2);
        QCOMPARE(result["allocated_bytes"], result["predicted_allocated_bytes"]);
        QVERIFY(result["loss"].toArray().at(0).toDouble() > 0);
        const QStringList lines = run.errors.split('\n', Qt::SkipEmptyParts);
        const QJsonObject last = QJsonDocument::fromJson(lines.last().toUtf8()).object();
        QCOMPARE(last["progress"].toDouble(), 1.0);
        QCOMPARE(last["step"].toInt(), 2);
        const QJsonObject comparison = m_work.run("compare train.json train.db --json").json();
        for (const QJsonValue device : comparison["per_device"].toArray())
            QCOMPARE(device.toObject()["peak_bytes"].toObject()["error"].toDouble(1), 0.0);
        // Whatever this machine did meanwhile, the calibrated design takes as long as the steps it learnt from.
        QCOMPARE(m_work.run("calibrate train.json train.db --busy-machine -o trained.json").code, 0);
        QCOMPARE(m_work.run("compare trained.json train.db").code, 0);
    }

    void whatABackendDoesOtherwiseIsCheckedBeforehand()
    {
        QCOMPARE(m_work.run("new dualpipe --devices 4 --microbatches 8 -o pairs.json --force").code, 0);
        const Outcome usual = m_work.run("check pairs.json"), asked = m_work.run("check pairs.json --for host");
        QCOMPARE(usual.code, 0);
        QCOMPARE(asked.code, 0);
        QVERIFY(!usual.errors.contains("train one after the other"));
        QVERIFY2(asked.errors.contains("train one after the other"), qPrintable(asked.errors));
        QCOMPARE(
            m_work.run("new 1f1b --devices 2 --microbatches 4 --model llama-3-8b --tensor-parallel 2 -o group.json")
                .code,
            0);
        QCOMPARE(m_work.run("check group.json --for cuda").code, 1);
        QCOMPARE(m_work.run("check group.json").code, 0);
        QCOMPARE(m_work.run("check pairs.json --for abacus").code, 2);
        QCOMPARE(m_work.run("check pairs.json --maths timed").code, 2); // of no backend
    }

    void aRunIsDumpedForOtherFrameworks()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 --recompute block -o dumped.json").code, 0);
        const QString run = "run dumped.json --backend host --steps 2 -o dumped.db --dump dumped.safetensors";
        const Outcome outcome = m_work.run(run + " --json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        QFile file(m_work.path("dumped.safetensors"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray all = file.readAll();
        quint64 length = 0;
        for (int i = 7; i >= 0; --i)
            length = length << 8 | static_cast<unsigned char>(all[i]);
        const QJsonObject header = QJsonDocument::fromJson(all.mid(8, qsizetype(length))).object();
        QVERIFY(!header.isEmpty());
        qint64 end = 0;
        for (const QString& name : header.keys())
            if (name != "__metadata__")
                end = std::max(end, header[name].toObject()["data_offsets"].toArray().at(1).toInteger());
        QCOMPARE(all.size(), qint64(8 + length) + end);
        QCOMPARE(header["losses"].toObject()["shape"].toArray(), (QJsonArray{2}));
        const QJsonObject losses = header["losses"].toObject();
        float last = 0;
        memcpy(&last, all.constData() + 8 + length + losses["data_offsets"].toArray().at(0).toInteger() + 4, 4);
        QCOMPARE(last, float(outcome.json()["loss"].toArray().at(1).toDouble()));
        for (const char* name : {"parameters.first/layer 0/qkv.weight", "parameters.after/head/norm.gamma",
                                 "gradients/embedding/table.weight", "inputs", "targets"})
            QVERIFY2(header.contains(QLatin1String(name)), name);
        QCOMPARE(m_work.run(run).code, 2);                            // it exists
        QCOMPARE(m_work.run(run + " --force --maths timed").code, 2); // there are no parameters
    }

    void anExperimentComparesDesignsAndWritesWhatCameOfIt()
    {
        const QString model = " --model byte-gpt-small --devices 2 --sequence 8 -o ";
        QCOMPARE(m_work.run("new 1f1b --microbatches 2 --name flush" + model + "flush.json").code, 0);
        QCOMPARE(
            m_work.run("new pipeoptim --microbatches 4 --microbatch-size 4 --name PipeOptim" + model + "ahead.json")
                .code,
            0);
        const QString command =
            "experiment flush.json ahead.json --steps 4 --seeds 2 --optimizer adamw -o curves.csv -o "
            "curves.svg --table table.csv --database all.db --json --progress json";
        const Outcome outcome = m_work.run(command);
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors.right(500)));
        const QJsonArray runs = outcome.json()["runs"].toArray();
        QCOMPARE(runs.size(), 6);
        QVERIFY(!outcome.json()["cancelled"].toBool(true));
        QVERIFY(runs[0]["reference"].toBool());
        QVERIFY(runs[1]["bit_equal_to_reference"].toBool());
        QVERIFY(!runs[2]["bit_equal_to_reference"].toBool(true));
        QCOMPARE(runs[2]["weights"][0]["staleness"].toInt(), 1);
        QCOMPARE(runs[2]["peak_bytes"], runs[2]["predicted_peak_bytes"]);
        QVERIFY(runs[2]["perplexity"].toDouble() > 1);
        // A line per update and one per run; what they say ends at everything.
        QList<QJsonObject> lines;
        for (const QString& line : outcome.errors.split('\n', Qt::SkipEmptyParts))
            lines << QJsonDocument::fromJson(line.toUtf8()).object();
        QCOMPARE(std::count_if(lines.begin(), lines.end(), [](const QJsonObject& o) { return o.contains("progress"); }),
                 24);
        QCOMPARE(std::count_if(lines.begin(), lines.end(), [](const QJsonObject& o) { return o.contains("finished"); }),
                 6);
        QCOMPARE(m_work.read("curves.csv").count('\n'), 5);
        QCOMPARE(m_work.read("table.csv").count('\n'), 4);
        QVERIFY(m_work.read("curves.svg").contains("PipeOptim"));
        SQLite::Database database(trace("all.db"));
        QCOMPARE(database.execAndGet("SELECT count(*) FROM EXPERIMENT_RUNS").getInt(), 6);
        QCOMPARE(database.execAndGet("SELECT count(*) FROM EXPERIMENT_LOSSES").getInt(), 24);
        QCOMPARE(m_work.run(command).code, 2); // the files are there
        QCOMPARE(m_work.run("experiment flush.json --steps 4 -o curves.txt").code, 2);
        const Outcome refused = m_work.run("experiment flush.json --optimizer adam");
        QCOMPARE(refused.code, 2);
        QVERIFY2(refused.errors.contains("use sgd or adamw"), qPrintable(refused.errors));
    }

    void whatPeopleReadFitsThePageAndHasNoEscapeCodes()
    {
        m_work.run("new 1f1b --microbatches 2 --model byte-gpt-small --devices 2 --sequence 8 -o flush.json --force");
        const Outcome outcome = m_work.run("experiment flush.json --steps 2 --seeds 2 --progress bar");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors.right(500)));
        QVERIFY(outcome.output.contains("sequential"));
        for (const QString& line : outcome.output.split('\n'))
            QVERIFY2(line.size() <= 100, qPrintable(line));
        QVERIFY(outcome.errors.contains("\r[====="));
        QVERIFY(!outcome.errors.contains('\033'));
        const Outcome run = m_work.run("run flush.json --backend host --steps 1 -o page.db");
        QVERIFY2(run.output.contains("every device allocated exactly as many bytes as were predicted"),
                 qPrintable(run.output));
        QVERIFY2(run.errors.isEmpty(), qPrintable(run.errors)); // no bar where there is no terminal
    }

    void moreDevicesThanCoresAreSaidBeforeTheRun()
    {
        const int devices = QThread::idealThreadCount() + 1;
        if (devices > 64)
            QSKIP("so many cores that a design with more devices takes long to train");
        m_work.run(
            QString("new 1f1b --devices %1 --microbatches %1 --model byte-gpt-small --scale layers=%1 --sequence 8 "
                    "-o many.json --force")
                .arg(devices));
        const QString warning = QString("%1 devices compute on %2 core").arg(devices).arg(devices - 1);
        const Outcome check = m_work.run("check many.json --for host");
        QVERIFY2(check.code == 0 && check.errors.contains(warning), qPrintable(check.errors));
        QVERIFY2(check.errors.contains("times as long as with a core for each"), qPrintable(check.errors));
        const Outcome run = m_work.run("run many.json --backend host --steps 1 --record nothing");
        QVERIFY2(run.code == 0 && run.errors.contains(warning), qPrintable(run.errors));
        const Outcome timed = m_work.run("run many.json --backend host --maths timed --steps 1 --record nothing");
        QVERIFY2(timed.code == 0 && !timed.errors.contains("devices compute"), qPrintable(timed.errors));
    }

    void anInterruptedExperimentKeepsItsFinishedRuns()
    {
        m_work.run("new 1f1b --microbatches 2 --model byte-gpt-small --devices 2 --sequence 8 -o flush.json --force");
        auto process = m_work.start(
            "experiment flush.json --steps 30 --seeds 1000 --database kept.db -o kept.csv --progress json");
        process->setReadChannel(QProcess::StandardError);
        Workplace::lineWith(*process, "finished");
        ::kill(static_cast<pid_t>(process->processId()), SIGINT);
        const Outcome outcome = Workplace::finish(*process);
        QCOMPARE(outcome.code, 1);
        const QRegularExpression said("cancelled: (\\d+) of 2000 runs are finished and kept");
        const QRegularExpressionMatch match = said.match(outcome.errors);
        QVERIFY2(match.hasMatch(), qPrintable(outcome.errors.right(500)));
        const int kept = match.captured(1).toInt();
        QVERIFY(kept >= 1);
        SQLite::Database database(trace("kept.db"));
        QCOMPARE(database.execAndGet("SELECT count(*) FROM EXPERIMENT_RUNS").getInt(), kept);
        QCOMPARE(m_work.read("kept.csv").split('\n').front().count(','), kept);
    }

    void anExperimentWhoseDiskIsFullKeepsItsNumbers()
    {
        m_work.run("new 1f1b --microbatches 2 --model byte-gpt-small --devices 2 --sequence 8 -o flush.json --force");
        // Room for the tables, and not for 2000 losses; blocks of 512 bytes.
        const Outcome outcome = m_work.shell("ulimit -f 70; \"$pipewright\" experiment flush.json --steps 1000 "
                                             "--database fullruns.db --json");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("fullruns.db: error: cannot be written"), qPrintable(outcome.errors));
        QVERIFY(outcome.errors.contains("the experiment goes on without it"));
        QCOMPARE(outcome.json()["runs"].toArray().size(), 2);
    }

    void aTraceIsReplacedOnlyByForce()
    {
        m_work.run("new 1f1b --devices 2 --microbatches 2 --saved 1MiB -o short.json");
        const QString run = "run short.json --backend host --clock virtual --steps 1 -o short.db";
        QCOMPARE(m_work.run(run).code, 0);
        const Outcome refused = m_work.run(run);
        QCOMPARE(refused.code, 2);
        QVERIFY(refused.errors.contains("--force"));
        QCOMPARE(m_work.run(run + " --force").code, 0);
        QVERIFY(TraceReader(trace("short.db")).complete());
    }

    void aRunThatCannotStartKeepsTheOldTrace()
    {
        m_work.run("new 1f1b --devices 2 --microbatches 2 --saved 1MiB -o kept.json --force");
        const QString run = "run kept.json --backend host --maths timed --steps 2 -o keptold.db";
        QCOMPARE(m_work.run(run).code, 0);
        const QByteArray before = m_work.read("keptold.db");
        const QStringList files = QDir(m_work.path(".")).entryList();
        const Outcome failed = m_work.run(run + " --force --device-memory 1KiB");
        QVERIFY2(failed.code == 2 || failed.code == 1, qPrintable(failed.errors));
        QCOMPARE(m_work.read("keptold.db"), before);
        QCOMPARE(QDir(m_work.path(".")).entryList(), files); // nothing is left over either
    }

    void aTraceThatIsBeingRecordedIsNotTaken()
    {
        auto process = startEndlessRun("busy.db");
        const Outcome second = m_work.run("run long.json --backend host --maths timed --steps 1 --force -o busy.db");
        const Outcome third = m_work.run("run long.json --backend host --clock virtual --steps 1 -o busy.db");
        process->terminate();
        QCOMPARE(Workplace::finish(*process).code, 1);
        QCOMPARE(second.code, 2);
        QVERIFY2(second.errors.contains("still running"), qPrintable(second.errors));
        QCOMPARE(third.code, 2);
        QVERIFY(!TraceReader(trace("busy.db")).steps().empty());
    }

    void aTraceThatIsRemovedIsToldWhileTheRunGoesOnAndItsNumbersAreKept()
    {
        const auto process = startEndlessRun("removed.db");
        QVERIFY(QFile::remove(m_work.path("removed.db")));
        const QByteArray line = Workplace::lineWith(*process, "was removed");
        QVERIFY2(line.contains("removed.db: error:"), line.constData());
        QVERIFY2(line.contains("the run goes on without it"), line.constData());
        ::kill(static_cast<pid_t>(process->processId()), SIGINT);
        const Outcome outcome = Workplace::finish(*process);
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.output.contains("last step"), qPrintable(outcome.output));
        QVERIFY2(outcome.output.contains(QRegularExpression("trace +removed.db: the trace was removed")),
                 qPrintable(outcome.output));
        QVERIFY(!outcome.errors.contains("the trace holds"));
        QVERIFY(!QFileInfo::exists(m_work.path("removed.db")));
    }

    void aRunWhoseDiskIsFullKeepsItsNumbers()
    {
        m_work.run("new 1f1b --devices 2 --microbatches 4 --saved 1MiB -o full.json --force");
        // Room for the trace's beginning, and not for 300 steps; blocks of 512 bytes.
        const Outcome outcome =
            m_work.shell("ulimit -f 160; \"$pipewright\" run full.json --backend host --clock virtual "
                         "--maths timed --steps 300 -o full.db --json");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("cannot write the trace"), qPrintable(outcome.errors));
        QCOMPARE(outcome.json()["step_ns"].toArray().size(), 300);
        QVERIFY(outcome.json()["trace_fault"].toString().contains("it holds"));
        QVERIFY(!TraceReader(trace("full.db")).complete());
    }

    void onlyFilesAreReplaced()
    {
        m_work.run("new 1f1b --devices 2 --microbatches 2 --saved 1MiB -o plain.json --force");
        const QByteArray pipe = m_work.path("pipe.svg").toUtf8();
        QCOMPARE(::mkfifo(pipe.constData(), 0600), 0);
        QVERIFY(QDir().mkdir(m_work.path("folder.svg")));
        QVERIFY(QFile::link("real.db", m_work.path("link.db")));
        for (const char* name : {"pipe.svg", "folder.svg"})
            for (const char* command :
                 {"run plain.json --backend host --clock virtual --steps 1 --force -o ",
                  "render plain.json --force -o ", "new 1f1b --devices 2 --microbatches 2 --force -o ",
                  "search plain.json --time-limit 1s --force -o ", "export plain.json --to perfetto --force -o "}) {
                const Outcome outcome = m_work.run(QString(command) + name);
                QVERIFY2(outcome.code == 2 && outcome.errors.contains(name) && outcome.errors.contains(", not a file"),
                         qPrintable(command + outcome.errors));
            }
        struct stat status {};
        QVERIFY(::lstat(pipe.constData(), &status) == 0 && S_ISFIFO(status.st_mode));
        QVERIFY(QFileInfo(m_work.path("folder.svg")).isDir());
        QCOMPARE(m_work.run("run plain.json --backend host --clock virtual --steps 1 -o link.db").code, 0);
        QCOMPARE(m_work.run("run plain.json --backend host --clock virtual --steps 1 --force -o link.db").code, 0);
        QVERIFY(QFileInfo(m_work.path("link.db")).isSymLink());
        QVERIFY(TraceReader(trace("real.db")).complete());
    }

    void aTraceOfAnotherDesignIsAFailedComparison()
    {
        m_work.run("new 1f1b --devices 2 --microbatches 2 --saved 1MiB -o mine.json");
        m_work.run("new gpipe --devices 2 --microbatches 2 --saved 1MiB -o other.json");
        m_work.run("run mine.json --backend host --clock virtual --steps 1 -o mine.db");
        const Outcome outcome = m_work.run("compare other.json mine.db");
        QCOMPARE(outcome.code, 1);
        QVERIFY2(outcome.errors.contains("another program"), qPrintable(outcome.errors));
        QCOMPARE(m_work.run("compare mine.json mine.db --step 7").code, 1);
    }

    void anInterruptedRunLeavesAReadableTrace_data()
    {
        QTest::addColumn<int>("signal");
        QTest::newRow("Ctrl+C") << SIGINT;
        QTest::newRow("terminate") << SIGTERM;
    }

    void anInterruptedRunLeavesAReadableTrace()
    {
        QFETCH(int, signal);
        const QString name = QString("interrupted-%1.db").arg(signal);
        const auto process = startEndlessRun(name);
        const Outcome outcome = outcomeOfSignal(*process, signal);
        QCOMPARE(outcome.code, 1);
        QVERIFY2(outcome.errors.contains("cancelled after"), qPrintable(outcome.errors.right(500)));
        const TraceReader reader(trace(name));
        QVERIFY(!reader.steps().empty());
        QCOMPARE(m_work.run("compare long.json " + name).code, 0);
    }

    void aSignalIsAnsweredAmidALongBlock_data() { anInterruptedRunLeavesAReadableTrace_data(); }
    void aSignalIsAnsweredAmidALongBlock()
    {
        QFETCH(int, signal);
        m_work.run("new 1f1b --devices 2 --microbatches 2 --forward 1000s --saved 1MiB -o slow.json --force");
        const QString name = QString("slow-%1.db").arg(signal);
        const auto process = m_work.start("run slow.json --backend host --maths timed --steps 1 -o " + name);
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(m_work.path(name)), 60'000);
        const Outcome outcome = outcomeOfSignal(*process, signal);
        QCOMPARE(outcome.code, 1);
        QVERIFY2(outcome.errors.contains("cancelled"), qPrintable(outcome.errors));
    }

    void aKilledRunLeavesAReadableTrace()
    {
        const auto process = startEndlessRun("killed.db");
        // Its first step is done; wait until that is committed too.
        QTRY_VERIFY_WITH_TIMEOUT(!TraceReader(trace("killed.db")).steps().empty(), 60'000);
        process->kill();
        QVERIFY(process->waitForFinished(60'000));
        QCOMPARE(process->exitStatus(), QProcess::CrashExit);
        const TraceReader reader(trace("killed.db"));
        QVERIFY(!reader.complete());
        QVERIFY(!reader.steps().empty());
        QCOMPARE(m_work.run("compare long.json killed.db").code, 0);
    }
};

PIPEWRIGHT_TEST(TestRuns, QCoreApplication)
#include "tst_runs.moc"
