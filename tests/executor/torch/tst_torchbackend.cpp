// SPDX-License-Identifier: GPL-3.0-or-later
// The launcher of PyTorch's ranks, with a program that speaks their protocol in the place of Python.
#include "core/program/compile.h"
#include "executor/torch/python.h"
#include "executor/torch/torchbackend.h"
#include "executor/torch/torchjob.h"
#include "executor/torch/torchstate.h"
#include "testmain.h"
#include "traces/store/tracereader.h"
#include "twotorchranks.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QTest>

#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

using namespace pipewright;
using namespace pipewright::test;

class TestTorchBackend : public QObject {
    Q_OBJECT

private slots:
    void whatRanksReportBecomesAnOrdinaryTrace()
    {
        const FakePython python(hello + R"(step 0; step 1
[ $RANK = 0 ] && say '{"gradients":{"reference":"whole-module","bit_equal":false,"max_relative_error":1e-6,"within":1e-4}}'
say '{"peak":1000}'
say '{"done":true}'
)");
        const Design design = twoStages();
        TorchOptions options = optionsFor(python);
        int told = 0;
        options.progress = [&told](const RunProgress& now) { told = now.step; };
        const RunResult result = runWithTorch(design, options);
        QCOMPARE(told, 2);
        QCOMPARE(result.stepTimes, (std::vector<Nanoseconds>{1000, 1000}));
        QCOMPARE(result.losses, (std::vector<double>{4, 3}));
        QCOMPARE(result.peakBytes, (std::vector<Bytes>{1000, 1000}));
        QCOMPARE(result.clockOffsets, (std::vector<Nanoseconds>{0, 1}));
        QVERIFY(result.gradients && result.gradients->holds() && !result.gradients->bitEqual);
        QCOMPARE(nlohmann::json::parse(result.toJson())["gradient_check"]["reference"].get<std::string>(),
                 std::string("whole-module"));

        const TraceReader trace(options.trace);
        QVERIFY(trace.complete());
        QCOMPARE(trace.header().backend, std::string("torch"));
        QCOMPARE(trace.design(), design);
        QCOMPARE(trace.steps().size(), std::size_t(2));
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const Timeline timeline = trace.timeline(program, 1);
        int blocks = 0;
        for (TaskId task = 0; task < program.tasks.size(); ++task) {
            if (program.tasks[task].kind == TaskKind::Transfer) {
                // Rank 0 waited for the first gradient, whose block ended at 400: its arrival was seen. The others'
                // were not.
                const bool seen = program.tasks[task].op == Op::I && program.tasks[task].microbatch() == 0;
                QCOMPARE(timeline.end[task], seen ? Nanoseconds(600) : notRun);
                QCOMPARE(timeline.start[task], seen ? Nanoseconds(400) : notRun);
            }
            if (program.tasks[task].kind != TaskKind::Compute)
                continue;
            ++blocks;
            QVERIFY(timeline.end[task] - timeline.start[task] == (program.tasks[task].op == Op::F ? 100 : 200));
        }
        QCOMPARE(blocks, 8);
    }

    void aRankThatDiesEndsTheRunAndNothingIsLeft()
    {
        const FakePython python(hello + R"(step 0
if [ $RANK = 1 ]; then
  while [ ! -s "$HERE/sleeper" ]; do sleep 0.01; done
  kill -9 $$
fi
echo $$ > "$HERE/rank0"
sleep 1000 & echo $! > "$HERE/sleeper"
wait
)");
        const TorchOptions options = optionsFor(python);
        const std::string fault = faultOf(twoStages(), options);
        compare(fault, "rank 1: error: the process was killed by signal 9");
        compare(fault, "the trace holds 1 step");
        QVERIFY(python.isGone("rank0"));
        QTRY_VERIFY(
            python.isGone("sleeper")); // of the rank's own group; whoever adopts it may take a moment to bury it
        const TraceReader trace(options.trace);
        QVERIFY(!trace.complete());
        QCOMPARE(trace.steps().size(), std::size_t(1));
    }

    void whatAKilledRunLeftInTheTemporaryFolderGoesWithTheNextOne()
    {
        const QTemporaryDir temporary;
        const QByteArray before = qgetenv("TMPDIR");
        qputenv("TMPDIR", temporary.path().toUtf8());
        const pid_t killed = ::fork();
        if (killed == 0) {
            const RunFolder left;
            QFile(QString::fromStdString(left.file("job.json"))).open(QIODevice::WriteOnly);
            ::_exit(0);
        }
        QCOMPARE(::waitpid(killed, nullptr, 0), killed);
        const QStringList leftover = QDir(temporary.path()).entryList(QDir::Dirs | QDir::NoDotAndDotDot);
        QCOMPARE(leftover.size(), 1);
        for (const char* users : {"another", "pipewright-torch-notes/deeper", "pipewright-torch-12345/deeper"})
            QVERIFY(QDir(temporary.path()).mkpath(users));
        {
            const RunFolder first, second; // those that live leave each other alone
            QVERIFY(!QFile::exists(temporary.filePath(leftover.front() + "/job.json"))); // the name may be used again
            QVERIFY(QFile::exists(QFileInfo(QString::fromStdString(first.file("job.json"))).path()));
            QVERIFY(QFile::exists(QFileInfo(QString::fromStdString(second.file("job.json"))).path()));
        }
        QCOMPARE(QDir(temporary.path()).entryList(QDir::AllEntries | QDir::NoDotAndDotDot),
                 (QStringList{"another", "pipewright-torch-12345", "pipewright-torch-notes"})); // the user's own
        qputenv("TMPDIR", before);
        if (before.isEmpty())
            qunsetenv("TMPDIR");
    }

    void theRankThatFailedFirstIsNamedAndNotTheOnesThatMissIt()
    {
        const FakePython python(hello + R"(
case $RANK in
0) say '{"failed":"RuntimeError: Connection closed by peer","where":"F0.1","consequence":true}' ;;
1) say '{"failed":"the output has another shape","where":"F1.1","hint":"pad the batch"}' ;;
esac
exit 1
)");
        const std::string fault = faultOf(twoStages(), optionsFor(python));
        compare(fault, "rank 1, F1.1: error: the output has another shape");
        compare(fault, "pad the batch");
    }

    void ranksThatSayNothingEndTheRunWithWhatTheyAreAt()
    {
        const FakePython python(hello + R"(say '{"at":"B'$RANK'.0"}'
echo $$ > "$HERE/rank$RANK"
sleep 1000
)");
        TorchOptions options = optionsFor(python);
        options.deadline = 200'000'000;
        const std::string fault = faultOf(twoStages(), options);
        compare(fault, "nothing was heard for 200 ms");
        compare(fault, "rank 0 at B0.0, rank 1 at B1.0");
        QVERIFY(python.isGone("rank0") && python.isGone("rank1"));
    }

    void aCancelledRunKeepsItsSteps()
    {
        const FakePython python(hello + R"(step 0
echo $$ > "$HERE/rank$RANK"
trap '' TERM
while :; do sleep 1000; done
)");
        TorchOptions options = optionsFor(python);
        std::atomic<bool> cancel{false};
        options.cancel = &cancel;
        QElapsedTimer clock;
        options.progress = [&](const RunProgress&) {
            cancel = true;
            clock.start();
        };
        const RunResult result = runWithTorch(twoStages(), options);
        QVERIFY(clock.isValid() && clock.elapsed() < 20'000); // two seconds of grace; the machine may be loaded
        QVERIFY(result.cancelled);
        QCOMPARE(TraceReader(options.trace).steps().size(), std::size_t(1));
        // A rank may have been ended before it wrote its number.
        for (const char* rank : {"rank0", "rank1"})
            QVERIFY(!python.wrote(rank) || python.isGone(rank));
    }

    void aRankThatEndsTooEarlyIsAFailure()
    {
        const FakePython python(hello + "step 0\n");
        compare(faultOf(twoStages(), optionsFor(python)), "the process ended with code 0");
    }

    void aReportOfAnotherRanksBlockIsRefused()
    {
        const FakePython python(hello + R"(say '{"step":0,"blocks":[["F",0,0,1,2]]}'; say '{"done":true}')");
        compare(faultOf(twoStages(), optionsFor(python)), "rank 1: error: ran F0.0, which is not its own");
    }

    void textThatIsNoReportIsRefused()
    {
        const FakePython python("say 'Hello, world'\n");
        compare(faultOf(twoStages(), optionsFor(python)), "this is no report: \"Hello, world\"");
    }

    /// As whole numbers these would be undefined, and differences of such times too.
    void numbersThatCannotBeAreRefused()
    {
        for (const char* report :
             {R"({"step":1e308,"blocks":[]})", R"({"step":0,"start":-9223372036854775808,"end":9223372036854775807})",
              R"({"step":0,"blocks":[["F",1e30,0,1,2]]})", R"({"peak":1.5})"}) {
            const FakePython python(hello + "say '" + report + "'");
            compare(faultOf(twoStages(), optionsFor(python)), "is no whole number of a possible size");
        }
    }

    void aRunThatNeverBeganLeavesAnOldTrace()
    {
        const FakePython python(hello + R"(say '{"failed":"there is no file model.py","where":"--module"}'; exit 1)");
        TorchOptions options = optionsFor(python);
        std::ofstream(options.trace) << "old";
        options.overwriteTrace = true;
        compare(faultOf(twoStages(), options), "there is no file model.py");
        std::string text;
        std::ifstream(options.trace) >> text;
        QCOMPARE(text, std::string("old"));
    }

    void whatPytorchCannotRunIsRefusedBeforeAnythingStarts_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("said");
        QTest::newRow("two copies of the model") << "chimera"
                                                 << "has one copy of the model";
        QTest::newRow("pieces of sequences") << "seq1f1b"
                                             << "of a piece of a sequence";
    }

    void whatPytorchCannotRunIsRefusedBeforeAnythingStarts()
    {
        QFETCH(QString, family);
        QFETCH(QString, said);
        const FakePython python("touch \"$HERE/started\"\n");
        const std::string fault = faultOf(familyDesign(qPrintable(family), 2, 4), optionsFor(python));
        compare(fault, qPrintable(said));
        compare(fault, "device 0, "); // the first block of its kind
        QVERIFY(!python.wrote("started"));
    }

    /// PipeDream's backward reads what its forward read; PipeOptim's forward reads a prediction of its own making.
    void whichWeightsABlockReadsIsPartOfTheJob()
    {
        Diagnostics notes;
        const auto versions = [&](const char* family) {
            return nlohmann::json::parse(torchJob(familyDesign(family, 2, 4), {}, notes)).at("versions");
        };
        const nlohmann::json stashed = versions("pipedream");
        QCOMPARE(stashed.at("optimizer").get<std::string>(), std::string("sgd"));
        QCOMPARE(stashed.at("batches").at(1).size(), std::size_t(4)); // an update per microbatch
        std::map<std::pair<int, int>, int> forward;
        int backwards = 0, updates = 0, behind = 0;
        for (const auto& rank : stashed.at("order"))
            for (const auto& block : rank) {
                const std::pair<int, int> at(block.at("stage"), block.at("microbatch"));
                const int version = block.at("version");
                if (block.at("op") == "F") {
                    forward[at] = version;
                } else if (block.at("op") == "B") {
                    QCOMPARE(version, forward.at(at));
                    behind += block.at("update").get<int>() - version;
                    ++backwards;
                } else {
                    QCOMPARE(block.at("update").get<int>(), at.second);
                    ++updates;
                }
            }
        QCOMPARE(backwards, 8);
        QCOMPARE(updates, 8);
        QCOMPARE(behind, 3); // stage 0 is one update behind, but for the first microbatch
        const nlohmann::json predicted = versions("pipeoptim");
        const nlohmann::json& first = predicted.at("order").at(0).at(0);
        QCOMPARE(first.at("steps").get<int>(), 1);
        QVERIFY(first.at("made_by") == nlohmann::json({"F", 0, 0}));
        QVERIFY(notes.empty());
    }

    /// A field that is not on the list, as one that somebody adds, is not run in silence.
    void whatIsNotOnTheListIsNotRun()
    {
        Design design = familyDesign("pipedream", 2, 4);
        Diagnostics notes;
        QVERIFY(!torchJob(design, {}, notes).empty());
        design.schedule.firstStageMaySplit = !design.schedule.firstStageMaySplit; // named: other tools need not know
        QVERIFY(!torchJob(design, {}, notes).empty());
        design = twoStages();
        design.schedule.shardedStates = true;
        std::string fault;
        try {
            torchJob(design, {}, notes);
        } catch (const Error& error) {
            fault = error.diagnostics().front().what;
        }
        QCOMPARE(fault, std::string("the design states what PyTorch's ranks do not know"));
    }

    void aRankHasItsStagesForItself()
    {
        DesignRequest request = requestFor("cdp-v1", 2, 4);
        request.layout = WorkerLayout::Workers;
        const FakePython python("touch \"$HERE/started\"\n");
        compare(faultOf(makeDesign(request), optionsFor(python)), "several devices work on a stage");
        QVERIFY(!python.wrote("started"));
    }

    void whatThisPythonsPytorchCanRunIsAskedOfIt()
    {
        const FakePython there(
            R"(echo '{"about": {"torch": "2.15", "python": "3.11", "backends": ["gloo", "nccl"], "gpus": 2}}' >&3
)");
        const TorchState state = torchState(optionsFor(there).python);
        QCOMPARE(state.reason, std::string());
        QCOMPARE(state.torch, std::string("2.15"));
        QCOMPARE(state.backends.size(), std::size_t(2));
        QCOMPARE(state.gpus, 2);
        const FakePython without(R"(echo '{"about": {"reason": "cannot import torch"}}' >&3
)");
        QCOMPARE(torchState(optionsFor(without).python).reason, std::string("cannot import torch"));
        compare(torchState("/no/such/python").reason, "/no/such/python");
        const FakePython silent("exit 0\n");
        compare(torchState(optionsFor(silent).python).reason, "said nothing of PyTorch");
    }

    void ranksAreAsManyAsDevices()
    {
        const FakePython python("exit 1\n");
        TorchOptions options = optionsFor(python);
        options.ranks = 3;
        compare(faultOf(twoStages(), options), "3 ranks, and the design has 2 devices");
        options.ranks = 0;
        options.python = "/no/such/python";
        compare(faultOf(twoStages(), options), "--python");
    }

    void whatRanksRecordedIntoAFolderIsCollected()
    {
        const FakePython python("");
        for (int rank = 0; rank < 2; ++rank) {
            std::ofstream file(python.path(rank == 0 ? "rank0.jsonl" : "rank1.jsonl"));
            file << R"({"hello":)" << rank << R"(,"name":"x"})" << '\n'
                 << R"({"step":0,"blocks":[["F",)" << rank << R"(,0,10,20]]})" << '\n'
                 << R"({"step":0,"start":5,"end":50,"loss":null})" << '\n'
                 << R"({"done":true})" << '\n';
        }
        TorchOptions options = optionsFor(python);
        const RunResult result = collectTorchRun(twoStages(), python.path("."), options);
        QCOMPARE(result.stepTimes, std::vector<Nanoseconds>{45});
        QVERIFY(TraceReader(options.trace).complete());
    }

    void aLossThatIsNoNumberIsRecordedAndSaid_data()
    {
        QTest::addColumn<QString>("loss");
        QTest::addColumn<QString>("said");
        QTest::newRow("NaN") << "nan"
                             << "loss: warning: is NaN from step 2 on";
        QTest::newRow("infinite") << "-inf"
                                  << "loss: warning: is infinite from step 2 on";
    }
    void aLossThatIsNoNumberIsRecordedAndSaid()
    {
        QFETCH(QString, loss);
        QFETCH(QString, said);
        const FakePython python("");
        for (int rank = 0; rank < 2; ++rank) {
            std::ofstream file(python.path(rank == 0 ? "rank0.jsonl" : "rank1.jsonl"));
            for (int step = 0; step < 3; ++step)
                file << R"({"step":)" << step << R"(,"start":5,"end":50,"loss":)"
                     << (rank == 0   ? "null"
                         : step == 0 ? "4.5"
                                     : "\"" + loss.toStdString() + "\"")
                     << "}\n";
            file << R"({"done":true})" << '\n';
        }
        const RunResult result = collectTorchRun(twoStages(), python.path("."), optionsFor(python));
        QCOMPARE(result.losses.front(), 4.5);
        QVERIFY(!std::isfinite(result.losses[1]) && !std::isfinite(result.losses[2]));
        compare(toString(result.notes), said.toUtf8());
        QCOMPARE(std::count_if(result.notes.begin(), result.notes.end(),
                               [](const Diagnostic& note) { return note.where == "loss"; }),
                 std::ptrdiff_t(1));
    }

    void whatARankFoundInTheModuleIsToldAtOnce()
    {
        const FakePython python(hello + R"([ $RANK = 0 ] && say '{"found":[{"kind":"shared","what":"one parameter"}]}'
step 0; step 1
say '{"done":true}'
)");
        TorchOptions options = optionsFor(python);
        std::string told;
        int stepsBefore = -1, steps = 0;
        options.progress = [&](const RunProgress&) { ++steps; };
        options.tell = [&](const Diagnostics& now) {
            told += toString(now);
            stepsBefore = steps;
        };
        runWithTorch(twoStages(), options);
        QCOMPARE(told, std::string("module: note: one parameter"));
        QCOMPARE(stepsBefore, 0);
    }

    void ranksThatDidNotEndAreNamedWhenTheirRunIsCollected_data()
    {
        QTest::addColumn<QString>("lastLines");
        QTest::addColumn<QString>("said");
        QTest::newRow("killed between two lines") << "{\"at\":\"B1.0\"}\n"
                                                  << "the run did not end: rank 1 is at B1.0; the trace holds 1 step";
        QTest::newRow("killed amid a line") << "{\"at\":\"B1.0\"}\n{\"step\":1,\"blo"
                                            << "rank 1 is at B1.0, amid a line of its report; the trace holds 1 step";
        QTest::newRow("never started") << QString() << "rank 1 has written nothing (";
        QTest::newRow("a fault amid the file") << "{\"at\":\n{\"done\":true}\n"
                                               << "this is no report";
    }
    void ranksThatDidNotEndAreNamedWhenTheirRunIsCollected()
    {
        QFETCH(QString, lastLines);
        QFETCH(QString, said);
        const FakePython python("");
        for (int rank = 0; rank < 2; ++rank) {
            if (rank == 1 && lastLines.isNull())
                continue;
            std::ofstream file(python.path(rank == 0 ? "rank0.jsonl" : "rank1.jsonl"));
            file << R"({"hello":)" << rank << R"(,"name":"x"})" << '\n'
                 << R"({"step":0,"start":5,"end":50,"loss":null})" << '\n'
                 << (rank == 0 ? "{\"done\":true}\n" : lastLines.toStdString());
        }
        const TorchOptions options = optionsFor(python);
        try {
            collectTorchRun(twoStages(), python.path("."), options);
            QFAIL("taken for a whole run");
        } catch (const Error& error) {
            compare(error.what(), said.toUtf8());
        }
    }

    void theCommandForAPersonsOwnLauncherIsPrintedForSeveralMachinesToo()
    {
        const std::string text = torchCommandText({}, 8, "a.job.json", "a.ranks");
        compare(text, "torchrun --nproc-per-node 8 -m pipewright.run a.job.json --record a.ranks\n");
        compare(text, "torchrun --nnodes MACHINES --nproc-per-node RANKS_OF_EACH --rdzv-backend c10d --rdzv-endpoint "
                      "FIRST_MACHINE:29500 -m pipewright.run a.job.json --record a.ranks    # 8 ranks together\n");
        compare(text, "srun --ntasks 8 python3 -m pipewright.run");
        const std::string odd = torchCommandText({}, 8, "a b/it's;.json", "$HOME");
        compare(odd, R"(-m pipewright.run 'a b/it'\''s;.json' --record '$HOME')");
    }
};

PIPEWRIGHT_TEST(TestTorchBackend, QCoreApplication)
#include "tst_torchbackend.moc"
