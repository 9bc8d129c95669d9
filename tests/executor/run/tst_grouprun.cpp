// SPDX-License-Identifier: GPL-3.0-or-later
// Whole runs of designs whose stages are held by groups: every member runs, the trace is the groups', with the members'
// parts under its blocks.
#include "core/design/stageplans.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "executor/mpi/rankbackend.h"
#include "executor/mpi/socketmesh.h"
#include "executor/run/backendcheck.h"
#include "executor/run/grouprun.h"
#include "executor/run/run.h"
#include "makers/groups.h"
#include "testmain.h"
#include "traces/analysis/blockkernels.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <thread>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// A run on a thread for each rank; what each threw.
std::vector<std::string> onRanks(std::vector<std::unique_ptr<Mesh>>& meshes,
                                 const std::function<void(const RunOptions&)>& go, const RunOptions& options)
{
    std::vector<std::string> failures(meshes.size());
    std::vector<std::thread> ranks;
    for (std::size_t r = 0; r < meshes.size(); ++r)
        ranks.emplace_back([&, r] {
            try {
                RunOptions own = options;
                own.createBackend = [&](int) { return createRankBackend(std::move(meshes[r]), 20'000'000'000); };
                go(own);
            } catch (const Error& error) {
                failures[r] = error.what();
            }
        });
    for (std::thread& rank : ranks)
        rank.join();
    return failures;
}

} // namespace

class GroupRunTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void allMembersTrainAndTheTraceIsTheGroups_data()
    {
        QTest::addColumn<QString>("family");
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half"})
            QTest::newRow(family) << family;
    }
    void allMembersTrainAndTheTraceIsTheGroups()
    {
        QFETCH(QString, family);
        const QTemporaryDir folder;
        const Design design = groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, 4, groupShape(6));
        RunOptions options;
        options.steps = 2;
        options.trace = folder.filePath("run.db").toStdString();
        const RunResult result = run(design, options);
        QCOMPARE(result.maths, std::string("training"));
        QCOMPARE(result.devices, 4);
        QCOMPARE(result.groups, (std::vector<int>{0, 0, 1, 1}));
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        QVERIFY(result.gradients && result.gradients->holds());
        QVERIFY(result.losses.back() < 6 && result.losses.back() > 4); // ln 256 is 5.5
        QVERIFY(QString::fromStdString(result.toJson()).contains("\"group\":[0,0,1,1]"));

        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        const Design recorded = reader.design();
        const Program program = compile(recorded.schedule, recorded.costs, recorded.dataflow);
        const Timeline timeline = reader.timeline(program, 1);
        QCOMPARE(program.devices.size(), std::size_t{2});
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            QVERIFY2(timeline.start[t] != notRun && timeline.end[t] >= timeline.start[t], program.label(t).c_str());
        // Memory is that of each group's fullest member, as the recorded design says.
        for (std::size_t group = 0; group < 2; ++group)
            QCOMPARE(reader.peakBytes()[group], std::max(result.peakBytes[2 * group], result.peakBytes[2 * group + 1]));
        QVERIFY(reader.holdsGpuWork() && !reader.holdsKernels()); // nothing is said of GPUs
        QVERIFY(!kernelTotals(reader, program, 1));
        const GpuWork parts = reader.gpuWork(program, 1);
        QVERIFY(!parts.empty());
    }

    void predictionIsOfMembersAndTheVirtualClockAgrees()
    {
        const Design design = groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 1e9, 4e8}}, 6);
        const Prediction members = predictMembers(GroupRun(design, false).members);
        QCOMPARE(members.metrics.devices.size(), std::size_t{5});
        const Prediction groups = predict(design);
        QVERIFY(members.metrics.makespan <= groups.metrics.makespan + 100);
        RunOptions options;
        options.maths = RunOptions::Maths::Timed;
        options.clock = RunOptions::Clock::Virtual;
        const RunResult result = run(design, options);
        QCOMPARE(result.stepTimes.front(), members.metrics.makespan);
    }

    void membersThatAreProcessesTrainToTheBitsOfThreads_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("plan");
        QTest::newRow("1f1b") << "1f1b"
                              << "hap";
        QTest::newRow("zb-h1, cut rows and columns") << "zb-h1"
                                                     << "megatron";
        QTest::newRow("v-half") << "v-half"
                                << "even";
        QTest::newRow("two replicas") << "chimera"
                                      << "data-parallel";
    }
    void membersThatAreProcessesTrainToTheBitsOfThreads()
    {
        QFETCH(QString, family);
        QFETCH(QString, plan);
        ModelShape shape = groupShape(4);
        shape.tiedHead = true;
        const Design design = withStrategy(groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, 4, shape),
                                           *sharding::strategyNamed(plan.toStdString()));
        RunOptions options;
        options.steps = 2;
        options.runtime.checkMemory = true;
        const RunResult threads = run(design, options);
        const QTemporaryDir folder;
        options.trace = folder.filePath("ranks.db").toStdString();
        options.backend = "mpi";
        const int processes = devicesOfRun(design, meansOf(options));
        QCOMPARE(processes, 4);
        auto meshes = createLocalMeshes(processes);
        RunResult all;
        const auto failures = onRanks(
            meshes,
            [&](const RunOptions& own) {
                RunResult result = run(design, own);
                if (result.speaks)
                    all = std::move(result);
            },
            options);
        QCOMPARE(failures, std::vector<std::string>(4));
        QCOMPARE(all.losses, threads.losses); // sums are made in the order of the members, there as here
        QVERIFY(all.gradients && all.gradients->holds());
        QCOMPARE(all.gradients->maxRelativeError, threads.gradients->maxRelativeError);
        QCOMPARE(all.groups, threads.groups);
        QCOMPARE(all.peakBytes, all.predictedPeakBytes);
        for (std::size_t d = 0; d < 4; ++d)
            QCOMPARE(all.heldBytes[d], all.memory[d].total());
        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        const Program program = predict(reader.design()).program;
        const Timeline timeline = reader.timeline(program, 1);
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            QVERIFY2(timeline.start[t] != notRun && timeline.end[t] >= timeline.start[t], program.label(t).c_str());
        QVERIFY(!reader.gpuWork(program, 1).empty()); // parts and collectives of the members
    }

    void aProcessThatFailsEndsTheOthersAmidACollective()
    {
        const Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 4);
        RunOptions options;
        options.steps = 1;
        options.backend = "mpi";
        options.runtime.faults = {{.kind = Fault::Kind::Throws, .device = 1, .instruction = 2}};
        auto meshes = createLocalMeshes(4);
        const std::vector<std::string> failures = onRanks(
            meshes, [&](const RunOptions& own) { run(design, own); }, options);
        for (const std::string& failure : failures)
            QVERIFY2(failure.find("an injected fault made its maths fail") != std::string::npos, failure.c_str());
    }

    void gpusSayThatTheyDoNotTrainGroups()
    {
        const Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4);
        for (const char* backend : {"host", "mpi"})
            QVERIFY(checkForBackend(design, {backend, RunOptions::Maths::Training, false}).trains);
        for (const char* backend : {"mpi", "cuda"}) {
            const BackendCheck check = checkForBackend(design, {backend, RunOptions::Maths::Training, false, true});
            QVERIFY(!check.trains && hasErrors(check.found));
            QVERIFY(QString::fromStdString(check.found.back().what).contains("are not trained on GPUs"));
            QVERIFY(!hasErrors(checkForBackend(design, {backend, RunOptions::Maths::Timed, false}).found));
        }
    }

    void whatGroupsDoNotTrainIsSaidBeforehand_data()
    {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("where");
        QTest::newRow("clamped gates") << "clamped"
                                       << "model.activation";
        QTest::newRow("bf16") << "bf16"
                              << "model.data_type";
    }
    void whatGroupsDoNotTrainIsSaidBeforehand()
    {
        QFETCH(QString, what);
        QFETCH(QString, where);
        ModelShape shape = groupShape();
        shape.gatedMlp = what == "clamped";
        shape.activation = what == "clamped" ? Activation::ClampedSilu : shape.activation;
        shape.dataType = what == "bf16" ? DataType::Bf16 : DataType::Fp32;
        const Diagnostics why = whyNotTrainable(groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4, shape));
        QVERIFY(!why.empty());
        QCOMPARE(QString::fromStdString(why.front().where), where);
        QVERIFY(!why.front().hint.empty());
    }
};

PIPEWRIGHT_TEST(GroupRunTest, NoApplication)
#include "tst_grouprun.moc"
