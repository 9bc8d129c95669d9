// SPDX-License-Identifier: GPL-3.0-or-later
// One process per device, as a person starts it: plainly, where the program brings its own mpirun, and with
// nothing but the variables that torchrun sets.
#include "app/program.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QFileInfo>
#include <QTest>

#include <csignal>

using namespace pipewright;
using namespace pipewright::test;

class TestRankRuns : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

    bool hasMpi() const { return m_work.run("devices --json").json()["mpi"].toObject()["available"].toBool(); }

    void makeDesign(int devices) const
    {
        QCOMPARE(m_work.run(QString("new 1f1b --devices %1 --microbatches 8 -o design.json --force").arg(devices)).code,
                 0);
    }

    /// Starts all ranks as torchrun would, and gives what rank 0 said.
    Outcome runUnderTorchrun(int ranks, const QString& words) const
    {
        static int port = 20000 + static_cast<int>(QCoreApplication::applicationPid() % 20000);
        port += 10;
        std::vector<std::unique_ptr<QProcess>> processes;
        for (int r = 0; r < ranks; ++r) {
            auto process = std::make_unique<QProcess>();
            QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
            environment.insert("RANK", QString::number(r));
            environment.insert("WORLD_SIZE", QString::number(ranks));
            environment.insert("MASTER_ADDR", "127.0.0.1");
            environment.insert("MASTER_PORT", QString::number(port));
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

    /// Another program plays mpirun.
    Outcome runUnder(const QByteArray& mpirun, const QString& before, const QString& behind) const
    {
        QDir(m_work.path({})).mkpath("bin");
        QFile script(m_work.path("bin/mpirun"));
        if (!script.open(QIODevice::WriteOnly | QIODevice::Truncate) || script.write("#!/bin/sh\n" + mpirun) < 0)
            qFatal("cannot write a script");
        script.close();
        script.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        return m_work.shell(before
                            + " PATH=\"$PWD/bin:$PATH\" \"$pipewright\" run design.json --backend mpi --steps 1 "
                              "--force -o played.db "
                            + behind);
    }

    static bool isProcess(const QByteArray& number) { return QFile::exists("/proc/" + QString(number.trimmed())); }

private Q_SLOTS:
    void ranksGiveTheBitsOfThreads_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<bool>("mpi");
        for (const int ranks : {2, 4})
            for (const bool mpi : {true, false})
                QTest::addRow("%d ranks, %s", ranks, mpi ? "mpirun" : "torchrun's variables") << ranks << mpi;
    }
    void ranksGiveTheBitsOfThreads()
    {
        QFETCH(int, ranks);
        QFETCH(bool, mpi);
        if (mpi && !hasMpi())
            QSKIP("no MPI here");
        makeDesign(ranks);
        const QJsonObject threads =
            m_work.run("run design.json --backend host --steps 3 --json --force -o host.db").json();
        const QString words = "run design.json --backend mpi --steps 3 --json --progress none --force -o ranks.db";
        const Outcome outcome = mpi ? m_work.run(words) : runUnderTorchrun(ranks, words);
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
        if (!hasMpi())
            QSKIP("no MPI here");
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
        if (!hasMpi())
            QSKIP("no MPI here");
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
        QTest::addColumn<bool>("mpi");
        QTest::newRow("mpirun") << true;
        QTest::newRow("torchrun's variables") << false;
    }
    void aKilledRankEndsTheRunIsNamedAndLeavesATrace()
    {
        QFETCH(bool, mpi);
        if (mpi && !hasMpi())
            QSKIP("no MPI here");
        makeDesign(3);
        const QString words =
            "run design.json --backend mpi --steps 50 --maths timed --deadline 20s --inject killed:1:3:4 "
            "--progress none --force -o killed.db";
        const Outcome outcome = mpi ? m_work.run(words) : runUnderTorchrun(3, words);
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
        if (!hasMpi())
            QSKIP("no MPI here");
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

    /// MPI itself waits for ever for a process that never comes to it.
    void aRankThatNeverComesEndsTheStart()
    {
        if (!hasMpi())
            QSKIP("no MPI here");
        makeDesign(2);
        const Outcome outcome = m_work.shell(
            "root=; test $(id -u) != 0 || root=--allow-run-as-root; timeout 120 mpirun $root --oversubscribe -n 2 "
            "sh -c 'test $OMPI_COMM_WORLD_RANK = 0 || exec sleep 1000; exec \"$0\" run design.json --backend mpi "
            "--maths timed --steps 1 --deadline 2s --force -o late.db' \"$pipewright\"");
        QVERIFY(outcome.code != 0 && outcome.code != 124);
        QVERIFY2(outcome.errors.contains("not every process has come within 2 s"), qPrintable(outcome.errors));
    }

    /// mpirun itself waits for ever then, and heeds no SIGTERM.
    void tooFewOpenFilesForTheLauncherAreSaid()
    {
        if (!hasMpi())
            QSKIP("no MPI here");
        makeDesign(4);
        const Outcome outcome =
            m_work.shell("ulimit -n 40; timeout -s KILL 60 \"$pipewright\" run design.json --backend "
                         "mpi --maths timed --steps 1 --force -o files.db");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("open files"), qPrintable(outcome.errors));
    }

    /// A rank that stands still keeps mpirun waiting, though the run is over.
    void aLauncherThatNeverEndsIsEnded()
    {
        if (!hasMpi())
            QSKIP("no MPI here");
        makeDesign(2);
        const Outcome outcome = runUnder("printf '1\\n' >>$PIPEWRIGHT_VERDICT\ntrap '' TERM\necho $$ >played.pid\n"
                                         "while :; do sleep 1; done\n",
                                         "timeout 120 env", "");
        QCOMPARE(outcome.code, 1);
        QVERIFY(!m_work.read("played.pid").isEmpty());
        QVERIFY(!isProcess(m_work.read("played.pid")));
    }

    /// As mpirun does where memory is short: its ranks never began, or are gone, and it stands still.
    void aLauncherWithoutRanksIsEnded()
    {
        if (!hasMpi())
            QSKIP("no MPI here");
        makeDesign(2);
        const Outcome outcome = runUnder("echo $$ >played.pid\nexec sleep 1000\n", "timeout 120 env", "--deadline 1s");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("mpirun was ended by signal"), qPrintable(outcome.errors));
        QVERIFY(!isProcess(m_work.read("played.pid")));
    }

    /// If OpenBLAS started its threads, they would try for ever to allocate, and a fork would wait for them.
    void theLauncherIsStartedWhereMemoryIsShort()
    {
        if (!hasMpi())
            QSKIP("no MPI here");
        makeDesign(2);
        int started = 0;
        for (int mib = 170; mib <= 290; mib += 20) {
            const Outcome outcome =
                runUnder("exit 3\n", QString("ulimit -v %1; timeout -k 1 60 env").arg(mib * 1024), "");
            QVERIFY2(outcome.code == 2,
                     qPrintable(QString("%1 MiB: %2 %3").arg(mib).arg(outcome.code).arg(outcome.errors)));
            started += outcome.errors.contains("ended with code 3") ? 1 : 0;
        }
        QVERIFY(started > 0);
    }

    /// What is said to OpenBLAS in the environment is not said to others.
    void theLauncherHasTheEnvironmentThatWasGiven()
    {
        if (!hasMpi())
            QSKIP("no MPI here");
        makeDesign(2);
        for (const QByteArray given : {"", "7"}) {
            const QString variable = given.isEmpty() ? "" : " OPENBLAS_NUM_THREADS=" + given;
            runUnder("echo \"$FIRST $LAST $OPENBLAS_NUM_THREADS\" >played.env\n",
                     "env -i FIRST=1" + variable + " PATH=\"$PWD/bin:$PATH\" LAST=2", "");
            QCOMPARE(m_work.read("played.env").trimmed(), ("1 2 " + given).trimmed());
        }
    }

    void theLauncherEndsWithThisProgram_data()
    {
        QTest::addColumn<QByteArray>("launcher");
        QTest::addColumn<QString>("signal");
        QTest::newRow("killed") << QByteArray("exec sleep 1000\n") << "KILL";
        // As mpirun does that has too few files or too little memory.
        const QByteArray heedsNone = "trap '' TERM INT\nmkdir -p \"$TMPDIR/ompi.here/1\"\nwhile :; do sleep 1; done\n";
        QTest::newRow("killed, and the launcher heeds no signal") << heedsNone << "KILL";
        QTest::newRow("ended, and the launcher heeds no signal") << heedsNone << "TERM";
    }

    void theLauncherEndsWithThisProgram()
    {
        QFETCH(QByteArray, launcher);
        QFETCH(QString, signal);
        if (!hasMpi())
            QSKIP("no MPI here");
        makeDesign(2);
        QFile::remove(m_work.path("played.pid"));
        runUnder(
            "echo \"$TMPDIR\" >played.folders; echo \"$OMPI_MCA_btl_vader_backing_directory\" >>played.folders; "
            "touch \"$OMPI_MCA_btl_vader_backing_directory/segment\"; echo $$ >played.new; mv played.new played.pid\n"
                + launcher,
            "", "& while ! test -e played.pid; do sleep 0.1; done; kill -" + signal + " $!; wait $!");
        const QByteArray played = m_work.read("played.pid");
        QVERIFY(!played.isEmpty());
        QTRY_VERIFY_WITH_TIMEOUT(!isProcess(played), 60'000);
        const QStringList folders = QString::fromLocal8Bit(m_work.read("played.folders")).trimmed().split('\n');
        QCOMPARE(folders.size(), 2);
        for (const QString& folder : folders) {
            QVERIFY2(QFileInfo(folder).fileName().startsWith("pipewright-ranks-"), qPrintable(folder));
            QTRY_VERIFY_WITH_TIMEOUT(!QFile::exists(folder), 60'000); // by the guard, where the program was killed
        }
    }
};

PIPEWRIGHT_TEST(TestRankRuns, QCoreApplication)
#include "tst_rankruns.moc"
