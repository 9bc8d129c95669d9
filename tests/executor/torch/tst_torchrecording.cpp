// SPDX-License-Identifier: GPL-3.0-or-later
// What PyTorch's ranks record beside their blocks: what replicas exchange, and what PyTorch's profiler saw.
#include "core/program/compile.h"
#include "testmain.h"
#include "traces/analysis/blockkernels.h"
#include "traces/store/activitystore.h"
#include "traces/store/tracereader.h"
#include "twotorchranks.h"

#include <QTest>
#include <nlohmann/json.hpp>

using namespace pipewright;
using namespace pipewright::test;

class TestTorchRecording : public QObject {
    Q_OBJECT

private slots:
    void whatReplicasExchangeIsRecordedUnderItsBlock()
    {
        // Ranks 2 and 3 are the second copy of the pipeline; its loss is 20 more.
        const FakePython python("COPY=$((RANK / 2)) RANK=$((RANK % 2))\n" + hello + R"(step 0
[ $RANK = 0 ] && say '{"step":1,"blocks":[],"waits":[],"exchanges":[["all_reduce over replicas",512,"B",0,1,20900,21500]]}'
step 1
say '{"done":true}'
)");
        TorchOptions options = optionsFor(python);
        options.replicas = 2;
        const Design design = twoStages();
        const RunResult result = runWithTorch(design, options);
        QCOMPARE(result.devices, 2);
        QCOMPARE(result.losses, (std::vector<double>{14, 13})); // the mean of 4 and 24, of 3 and 23
        const TraceReader trace(options.trace);
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        QCOMPARE(trace.steps().size(), std::size_t(2));
        const GpuWork work = trace.gpuWork(program, 1);
        QCOMPARE(work.slices.size(), std::size_t(1)); // the first copy's alone
        QCOMPARE(work.names[work.slices[0].name], std::string("all_reduce over replicas"));
        QCOMPARE(program.label(work.slices[0].task), std::string("B0.1"));
        QCOMPARE(work.slices[0].end - work.slices[0].start, Nanoseconds(600));

        options.ranks = 3;
        compare(faultOf(design, options), "3 ranks, and 2 copies of 2 devices are 4");
        options.ranks = 0;
        options.syntheticStages = true;
        compare(faultOf(design, options), "--replicas");
        options.syntheticStages = false;
        compare(faultOf(familyDesign("pipedream", 2, 2), options), "updated amid the step");
    }

    void aBusyMachineIsRecorded()
    {
        const FakePython python(hello + R"(busy() { sed 's/"loss"/"core_wait":'$1',"loss"/' >&3; }
step 0 3>&1 | busy $((400 - 200 * RANK))
[ $RANK = 0 ] && step 1
[ $RANK = 1 ] && step 1 3>&1 | busy 7
say '{"done":true}'
)");
        const TorchOptions options = optionsFor(python);
        const RunResult result = runWithTorch(twoStages(), options);
        QCOMPARE(result.coreWaits, (std::vector<Nanoseconds>{300, -1})); // in step 1 rank 0 does not know
        const TraceReader trace(options.trace);
        QCOMPARE(trace.steps()[0].coreWait, Nanoseconds(300));
        QCOMPARE(trace.steps()[1].coreWait, Nanoseconds(-1));
    }

    void whatTheProfilerSawUnfoldsTheBlocks()
    {
        // Step 1 takes from 20,000 to 21,000: F0.0 of rank 0 its first 100, B1.1 of rank 1 from 500 to 700.
        const FakePython python(hello + R"(step 0
[ $RANK = 0 ] && say '{"step":1,"names":["aten::mm","aten::gelu"],"blocks":[["F",0,0],["B",0,1]],"activities":[["operator",0,0,20010,20060,-1,0,0,-1],["operator",1,0,20070,20090,-1,0,0,-1],["operator",0,-1,20300,20310,-1,7,0,-1]]}'
[ $RANK = 1 ] && say '{"step":1,"names":["aten::mm"],"blocks":[["B",1,1]],"activities":[["operator",0,0,20500,20700,-1,0,0,-1]]}'
step 1
say '{"step_with_profiler":'$((1000 + RANK))',"step_without_profiler":'$((900 - RANK))'}'
say '{"done":true}'
)");
        TorchOptions options = optionsFor(python);
        options.profile = true;
        const Design design = twoStages();
        const RunResult result = runWithTorch(design, options);
        QCOMPARE(result.recorder.stepWith, Nanoseconds(1001)); // of the slowest rank
        QCOMPARE(result.recorder.stepWithout, Nanoseconds(900));
        const auto json = nlohmann::json::parse(result.toJson());
        QCOMPARE(json["step_with_recorder_ns"].get<int>(), 1001);
        QCOMPARE(json["step_without_recorder_ns"].get<int>(), 900);

        const TraceReader trace(options.trace);
        QCOMPARE(trace.recordedWork(), std::optional(WorkKind::Operators));
        QVERIFY(!trace.holdsKernels()); // of GPUs
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const std::optional<KernelTotals> totals = kernelTotals(trace, program, 1);
        QVERIFY(totals && !kernelTotals(trace, program, 0)->blocks);
        QCOMPARE(totals->kind, WorkKind::Operators);
        QCOMPARE(totals->blocks, std::int64_t(2));
        QCOMPARE(totals->without, std::int64_t(6));
        QCOMPARE(totals->running, Nanoseconds(70 + 200));
        QCOMPARE(KernelGroups::standard().names()[totals->groups.front().group], std::string("product"));
        QCOMPARE(totals->groups.front().time, Nanoseconds(50 + 200));
        const GpuWork work = trace.gpuWork(program, 1);
        QCOMPARE(work.slices.size(), std::size_t(4));
        QCOMPARE(work.slices.front().device, 0);
        QCOMPARE(work.slices.back().device, 1);
        QCOMPARE(program.label(work.slices.back().task), std::string("B1.1"));
        QCOMPARE(work.slices[2].task, TaskId(none)); // of another thread

        // As an imported trace has them: slices on the lanes of the ranks' threads.
        const StoredActivities lanes = readActivities(options.trace);
        int operators = 0;
        for (const Track& track : lanes.tracks)
            operators += static_cast<int>(std::count(track.kind.begin(), track.kind.end(), ActivityKind::Operator));
        QCOMPARE(operators, 4);

        compare(faultOf(familyDesign("pipedream", 2, 2), options), "--record kernels");
    }

    void aProfileOfAnUnknownBlockOrNameIsRefused_data()
    {
        QTest::addColumn<QString>("activity");
        QTest::addColumn<QString>("fault");
        QTest::addRow("block") << QStringLiteral(R"(["operator",0,3,1,2,-1,0,0,-1])") << QStringLiteral("no block 3");
        QTest::addRow("name") << QStringLiteral(R"(["operator",9,0,1,2,-1,0,0,-1])") << QStringLiteral("no report");
        QTest::addRow("kind") << QStringLiteral(R"(["dream",0,0,1,2,-1,0,0,-1])") << QStringLiteral("no kind");
    }
    void aProfileOfAnUnknownBlockOrNameIsRefused()
    {
        QFETCH(QString, activity);
        QFETCH(QString, fault);
        const FakePython python(hello
                                + R"([ $RANK = 0 ] && say '{"step":0,"names":["a"],"blocks":[["F",0,0]],"activities":[)"
                                + activity.toStdString() + "]}'\nsleep 100\n");
        TorchOptions options = optionsFor(python);
        options.profile = true;
        const std::string said = faultOf(twoStages(), options);
        compare(said, "rank 0");
        if (fault != QLatin1String("no report"))
            compare(said, qPrintable(fault));
    }
};

PIPEWRIGHT_TEST(TestTorchRecording, QCoreApplication)
#include "tst_torchrecording.moc"
