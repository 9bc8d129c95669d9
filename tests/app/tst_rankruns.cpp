// SPDX-License-Identifier: GPL-3.0-or-later
// One process per device, as a person starts it: plainly, where the program starts the processes, and with nothing but
// the variables that torchrun or mpirun set.
#include "app/program.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QElapsedTimer>
#include <QFile>
#include <QTest>

#include <csignal>

using namespace pipewright;
using namespace pipewright::test;

class TestRankRuns : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

    void makeDesign(int devices) const
    {
        QCOMPARE(m_work.run(QString("new 1f1b --devices %1 --microbatches 8 -o design.json --force").arg(devices)).code,
                 0);
    }

    enum Launcher { Program, Torchrun, Mpirun };

    /// Starts all ranks as the launcher would, and gives what rank 0 said.
    Outcome runUnder(Launcher launcher, int ranks, const QString& words) const
    {
        if (launcher == Program)
            return m_work.run(words);
        static int port = 20000 + static_cast<int>(QCoreApplication::applicationPid() % 20000);
        port += 10;
        std::vector<std::unique_ptr<QProcess>> processes;
        for (int r = 0; r < ranks; ++r) {
            auto process = std::make_unique<QProcess>();
            QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
            if (launcher == Torchrun) {
                environment.insert("RANK", QString::number(r));
                environment.insert("WORLD_SIZE", QString::number(ranks));
                environment.insert("MASTER_ADDR", "127.0.0.1");
                environment.insert("MASTER_PORT", QString::number(port));
            } else {
                environment.insert("OMPI_COMM_WORLD_RANK", QString::number(r));
                environment.insert("OMPI_COMM_WORLD_SIZE", QString::number(ranks));
                environment.insert("OMPI_COMM_WORLD_LOCAL_SIZE", QString::number(ranks));
                environment.insert("PMIX_NAMESPACE", QString("job-%1").arg(port));
            }
            environment.insert("XDG_STATE_HOME", m_work.path("state"));
            process->setProcessEnvironment(environment);
            process->setWorkingDirectory(m_work.path({}));
            process->start(PIPEWRIGHT_PROGRAM, words.split(' '));
            processes.push_back(std::move(process));
        }
        for (auto& process : processes)
            process->waitForFinished(200'000);
        QProcess& first = *processes.front();
        return {first.exitStatus() == QProcess::NormalExit ? first.exitCode() : -1,
                QString::fromUtf8(first.readAllStandardOutput()), QString::fromUtf8(first.readAllStandardError())};
    }

    static bool isProcess(const QByteArray& number) { return QFile::exists("/proc/" + QString(number.trimmed())); }

private Q_SLOTS:
    void ranksGiveTheBitsOfThreads_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("launcher");
        for (const int ranks : {2, 4}) {
            QTest::addRow("%d ranks", ranks) << ranks << int(Program);
            QTest::addRow("%d ranks, torchrun's variables", ranks) << ranks << int(Torchrun);
        }
        QTest::newRow("3 ranks, mpirun's variables") << 3 << int(Mpirun);
    }
    void ranksGiveTheBitsOfThreads()
    {
        QFETCH(int, ranks);
        QFETCH(int, launcher);
        makeDesign(ranks);
        const QJsonObject threads =
            m_work.run("run design.json --backend host --steps 3 --json --force -o host.db").json();
        const QString words = "run design.json --backend mpi --steps 3 --json --progress none --force -o ranks.db";
        const Outcome outcome = runUnder(Launcher(launcher), ranks, words);
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        const QJsonObject result = outcome.json();
        QCOMPARE(result["backend"].toString(), "mpi");
        QVERIFY(result["gradient_check"]["bit_equal"].toBool());
        QCOMPARE(result["loss"], threads["loss"]);
        QCOMPARE(result["peak_bytes"], threads["peak_bytes"]);
        QCOMPARE(result["clock_offset_ns"].toArray().size(), ranks);
        const QJsonObject comparison = m_work.run("compare design.json ranks.db --tolerance 1000 --json").json();
        QCOMPARE(comparison["blocks"]["unmatched"].toInt(-1), 0);
    }

    void everyMemberOfAGroupIsAProcess()
    {
        QCOMPARE(
            m_work
                .run("new 1f1b --devices 2 --microbatches 2 --model byte-gpt-small --cluster host-mixed --force -o "
                     "mixed.json")
                .code,
            0);
        const QString words = "run mixed.json --steps 2 --json --progress none --force -o mixed.db --backend ";
        const QJsonObject threads = m_work.run(words + "host").json();
        const Outcome outcome = m_work.run(words + "mpi");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        const QJsonObject result = outcome.json();
        QCOMPARE(result["devices"].toInt(), 4);
        QCOMPARE(result["maths"].toString(), "training");
        QCOMPARE(result["loss"], threads["loss"]);
        QCOMPARE(result["group"], threads["group"]);
        QCOMPARE(result["peak_bytes"], result["predicted_peak_bytes"]);
        QCOMPARE(result["allocated_bytes"], result["predicted_allocated_bytes"]);
    }

    void gpusOfRanksAreRefusedWithTheReason()
    {
        makeDesign(2);
        const QString words = "run design.json --steps 1 --force -o gpus.db ";
        const Outcome host = m_work.run(words + "--backend host --device cuda");
        QCOMPARE(host.code, 2);
        QVERIFY2(host.errors.contains("says what each of several processes has (add --backend mpi"),
                 qPrintable(host.errors));
        const Outcome copies = m_work.run(words + "--backend mpi --device cuda --link copy");
        QCOMPARE(copies.code, 2);
        QVERIFY2(copies.errors.contains("reach each other by NCCL only"), qPrintable(copies.errors));
        const QJsonObject cuda = m_work.run("devices --json").json()["cuda"].toObject();
        if (cuda["available"].toBool())
            QSKIP("there is a GPU here");
        const Outcome without = m_work.run(words + "--backend mpi --device cuda"); // before any process is started
        QCOMPARE(without.code, 2);
        QVERIFY2(without.errors.contains("no GPU can be used: " + cuda["reason"].toString()),
                 qPrintable(without.errors));
    }

    void aLostAnswerIsNoSuccess()
    {
        makeDesign(2);
        const QString command = "\"$pipewright\" run design.json --backend mpi --steps 2 --maths timed --progress none "
                                "--force -o lost.db";
        for (const char* lost : {" >/dev/full", " >&-"}) {
            const Outcome outcome = m_work.shell(command + lost);
            QCOMPARE(outcome.code, 2);
            QVERIFY2(outcome.errors.contains("could not all be written"), qPrintable(outcome.errors));
        }
        QCOMPARE(m_work.shell(command + " | cat >all; test -s all").code, 0);
        QVERIFY(m_work.read("all").contains("lost.db"));
    }

    void aKilledRankEndsTheRunIsNamedAndLeavesATrace_data()
    {
        QTest::addColumn<int>("launcher");
        QTest::newRow("plain") << int(Program);
        QTest::newRow("torchrun's variables") << int(Torchrun);
    }
    void aKilledRankEndsTheRunIsNamedAndLeavesATrace()
    {
        QFETCH(int, launcher);
        makeDesign(3);
        const QString words =
            "run design.json --backend mpi --steps 50 --maths timed --deadline 20s --inject killed:1:3:4 "
            "--progress none --force -o killed.db";
        const Outcome outcome = runUnder(Launcher(launcher), 3, words);
        QVERIFY(outcome.code != 0);
        QVERIFY2(outcome.errors.contains("the process of device 1 (rank 1, process "), qPrintable(outcome.errors));
        QVERIFY2(outcome.errors.contains("is gone: it was killed or has crashed"), qPrintable(outcome.errors));
        const TraceReader reader(m_work.path("killed.db").toStdString());
        QVERIFY(!reader.complete());
        QCOMPARE(reader.steps().size(), std::size_t{3});
    }

    /// The backends of one process are asked in tst_runs.
    void aSignalEndsARunOfSeveralProcessesAndIsSaid_data()
    {
        QTest::addColumn<int>("signal");
        QTest::newRow("Ctrl+C") << SIGINT;
        QTest::newRow("terminate") << SIGTERM;
    }
    void aSignalEndsARunOfSeveralProcessesAndIsSaid()
    {
        QFETCH(int, signal);
        makeDesign(2);
        const auto process = m_work.start("run design.json --backend mpi --steps 1000000 --maths timed --progress json "
                                          "--force -o signalled.db");
        process->setReadChannel(QProcess::StandardError);
        Workplace::lineWith(*process, "\"step\"");
        QElapsedTimer clock;
        clock.start();
        ::kill(static_cast<pid_t>(process->processId()), signal);
        const Outcome outcome = Workplace::finish(*process);
        QVERIFY(clock.elapsed() < 30'000); // a second is promised; a loaded machine gives several processes less of it
        QVERIFY2(outcome.code == 1 || outcome.code == 2, qPrintable(QString::number(outcome.code) + outcome.errors));
        QVERIFY2(outcome.errors.contains("cancelled"), qPrintable(outcome.errors.right(1000)));
        QVERIFY(!TraceReader(m_work.path("signalled.db").toStdString()).steps().empty());
    }

    /// Who else should say it?
    void aRankThatFindsNoOtherSaysSo()
    {
        makeDesign(2);
        const Outcome outcome = m_work.shell(
            "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=9 timeout 120 \"$pipewright\" run design.json "
            "--backend mpi --maths timed --steps 1 --deadline 1s --force -o alone.db");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("ranks: error: "), qPrintable(outcome.errors));
    }

    /// The first rank speaks for all, unless it stands still.
    void aFirstRankThatStandsStillIsNamedByTheOther()
    {
        makeDesign(2);
        const Outcome outcome = m_work.shell(
            "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(($$ % 9000 + 12000)) XDG_STATE_HOME=$PWD/still\n"
            "start() { RANK=$1 \"$pipewright\" run design.json --backend mpi --maths timed --steps 1000000 "
            "--deadline 1s --progress json --force -o still.db 2>said$1 & }\n"
            "start 0; first=$!; start 1; second=$!\n"
            "until grep -q step said0 || ! kill -0 $first; do sleep 0.1; done\n"
            "kill -STOP $first; wait $second; code=$?; kill -KILL $first; cat said1 >&2; exit $code");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("the process of device 0 (rank 0, "), qPrintable(outcome.errors));
    }

    void aRankThatNeverComesEndsTheStart()
    {
        makeDesign(2);
        const Outcome outcome = m_work.shell(
            "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=late$$ timeout "
            "120 \"$pipewright\" run design.json --backend mpi --maths timed --steps 1 --deadline 1s --force -o "
            "late.db");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("missing are ranks 1"), qPrintable(outcome.errors));
    }

    void tooFewOpenFilesAreSaid()
    {
        makeDesign(4);
        const Outcome outcome = m_work.shell("ulimit -n 6; timeout -s KILL 60 \"$pipewright\" run design.json "
                                             "--backend mpi --maths timed --steps 1 --force -o files.db");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("Too many open files"), qPrintable(outcome.errors));
    }

    /// Whatever ends this program: nobody is left behind.
    void theRanksEndWithThisProgram_data()
    {
        QTest::addColumn<QString>("signal");
        QTest::newRow("killed") << "KILL";
        QTest::newRow("ended") << "TERM";
    }
    void theRanksEndWithThisProgram()
    {
        QFETCH(QString, signal);
        makeDesign(2);
        const Outcome outcome = m_work.shell("rm -f said; \"$pipewright\" run design.json --backend mpi --steps "
                                             "1000000 --maths timed --progress json --force "
                                             "-o ended.db >answer 2>said & run=$!\n"
                                             "until grep -q step said || ! kill -0 $run; do sleep 0.1; done\n"
                                             "ranks=$(ps -o pid= --ppid $run); echo $ranks; kill -"
                                             + signal + " $run; wait $run; sleep 1");
        const QStringList ranks = outcome.output.split(' ', Qt::SkipEmptyParts);
        QCOMPARE(ranks.size(), 2);
        for (const QString& rank : ranks)
            QTRY_VERIFY_WITH_TIMEOUT(!isProcess(rank.toUtf8()), 30'000);
    }

    /// Neither the first nor another one holds up the end.
    void aRankThatStandsStillIsEnded_data()
    {
        QTest::addColumn<QString>("rank");
        QTest::newRow("the first one") << "0";
        QTest::newRow("another one") << "1";
    }
    void aRankThatStandsStillIsEnded()
    {
        QFETCH(QString, rank);
        makeDesign(2);
        const Outcome outcome =
            m_work.shell("rm -f said; \"$pipewright\" run design.json --backend mpi --steps 1000000 --maths timed "
                         "--deadline 1s --progress json "
                         "--force -o still.db 2>said & run=$!\n"
                         "until grep -q step said || ! kill -0 $run; do sleep 0.1; done\n"
                         "ranks=$(ps -o pid= --ppid $run); echo $ranks\n"
                         "for each in $ranks; do grep -qz '^RANK="
                         + rank
                         + "$' /proc/$each/environ && kill -STOP $each; done; wait $run; code=$?\n"
                           "cat said >&2; exit $code");
        QCOMPARE(outcome.code, 2);
        for (const QString& rank : outcome.output.split(' ', Qt::SkipEmptyParts))
            QVERIFY(!isProcess(rank.toUtf8()));
    }

    void nobodysProgramsInTheCurrentFolderAreRun()
    {
        makeDesign(2);
        const Outcome outcome = m_work.shell(
            "mkdir -p planted; cd planted; cp ../design.json .\n"
            "for name in mpirun mpiexec python3 rm pipewright sh env; do\n"
            "printf '#!/bin/sh\\n: >>ran\\n' >$name; chmod +x $name; done\n"
            "for path in \":$PATH\" \".:$PATH\" \"$PATH:\"; do for backend in mpi 'torch --synthetic-stages'; do\n"
            "PATH=$path \"$pipewright\" run design.json --backend $backend --maths timed --steps 1 --force -o t.db\n"
            "PATH=$path \"$pipewright\" devices\ndone; done >/dev/null 2>&1; test ! -e ran");
        QCOMPARE(outcome.code, 0);
    }
};

PIPEWRIGHT_TEST(TestRankRuns, QCoreApplication)
#include "tst_rankruns.moc"
