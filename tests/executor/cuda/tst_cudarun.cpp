// SPDX-License-Identifier: GPL-3.0-or-later
// Whole designs on the CUDA backend, with the real plugin and its kernels on stand-in GPUs.
#include "core/design/designbuilder.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/schedule/replicas.h"
#include "executor/cuda/cudabackend.h"
#include "executor/cuda/standingpus.h"
#include "executor/run/run.h"
#include "executor/runtime/collectives.h"
#include "makers/faults.h"
#include "sanitized.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>
#include <SQLiteCpp/SQLiteCpp.h>

#include <numeric>

using namespace pipewright;

using test::nearlyEqual;
using test::onStandInGpus;
using test::smallGpt;
using test::StandInReports;
using test::standInTable;

namespace {

std::unique_ptr<Backend> withRecorder(int devices)
{
    CudaSetup setup = test::standInSetup(devices, 2);
    setup.cupti = test::standInLibrary("CUPTI");
    return createCudaBackend(standInTable(), setup);
}

#define CONTAINS(text, part) QVERIFY2((text).find(part) != std::string::npos, (text).c_str())

} // namespace

class TestCudaRun : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { NEEDS_STAND_IN_GPUS; }
    void init() { test::forgetStandIns(); }
    /// Nothing that NVIDIA's documentation forbids, nothing kept, and no wait that is none.
    void cleanup()
    {
        const StandInReports report = test::standInReport();
        QVERIFY2(report.faults().isEmpty(), qPrintable(report.faults()));
        QCOMPARE(report.counted("waits for events that were never recorded"), 0.0);
    }

    void trainsToTheReference_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("transport");
        QTest::addColumn<bool>("graphs");
        QTest::addColumn<int>("replicas");
        QTest::addColumn<int>("level"); ///< of what they share out
        const int copy = int(CudaTransport::Copy), nccl = int(CudaTransport::Nccl);
        int number = 2; // under the thread sanitizer copies, NCCL and graphs are among what is left
        const auto row = [&number](const char* name, const char* family, int devices, int transport, bool graphs,
                                   int replicas, int level = 0) {
            if (!leftOut(number++))
                QTest::addRow("%s", name) << QByteArray(family) << devices << transport << graphs << replicas << level;
        };
        row("1F1B, a reduction between GPUs", "1f1b", 2, copy, false, 1);
        row("split backward", "zb-h1", 3, copy, false, 1);
        row("values that stay on a device", "zb-v", 2, copy, true, 1);
        row("pieces of sequences", "seq1f1b", 3, copy, false, 1);
        row("pieces of sequences, captured", "seq1f1b", 2, copy, true, 1);
        row("two replicas, captured", "chimera", 4, copy, true, 1);
        row("NCCL", "1f1b", 2, nccl, false, 1);
        row("NCCL, two replicas' gradients", "chimera", 4, nccl, true, 1);
        row("two copies of a pipeline, captured", "zb-h1", 4, copy, true, 2);
        row("NCCL, four copies of one device", "1f1b", 4, nccl, false, 4);
        row("three copies, shared optimizer state", "1f1b", 6, copy, false, 3, 1);
        row("NCCL, three copies, shared optimizer state, captured", "1f1b", 3, nccl, true, 3, 1);
        row("NCCL, four devices on two GPUs, captured", "interleaved-1f1b", 4, nccl, true, 1);
        row("two copies, shared gradients", "zb-h1", 4, copy, false, 2, 2);
        row("two copies, shared parameters, captured", "interleaved-1f1b", 4, copy, true, 2, 3);
        row("NCCL, three copies, shared parameters", "1f1b", 3, nccl, false, 3, 3);
    }
    void trainsToTheReference()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, devices);
        QFETCH(int, transport);
        QFETCH(bool, graphs);
        QFETCH(int, replicas);
        QFETCH(int, level);
        Design design = smallGpt(family.toStdString(), devices / replicas, devices);
        design.schedule = withReplicas(design.schedule, replicas);
        design.schedule.zero = {.level = level, .reshard = {true, {}}, .prefetch = 0};
        test::collectivesAsked = 0;
        RunOptions options = onStandInGpus(CudaTransport(transport), test::countingTable());
        options.runtime.captureBlocks = graphs;
        const RunResult gpu = run(design, options);
        QCOMPARE(gpu.backend, std::string("cuda"));
        QCOMPARE(gpu.maths, std::string("training"));
        QVERIFY(gpu.gradients && gpu.gradients->holds() && gpu.gradients->skipped.empty());
        QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
        const StandInReports report = test::standInReport();
        // The second step captures every block, and launches them.
        const int blocks =
            static_cast<int>(std::accumulate(design.schedule.order.begin(), design.schedule.order.end(), std::size_t{0},
                                             [](std::size_t sum, const auto& list) { return sum + list.size(); }));
        QCOMPARE(report.counted("graph launches"), graphs ? double(blocks) : 0.0);
        // Whatever two GPUs both want the sum of, NCCL adds up, both taking part; of shares each sends the other its
        // own.
        const bool nccl = CudaTransport(transport) == CudaTransport::Nccl;
        QCOMPARE(test::collectivesAsked > 0, nccl && !design.schedule.sharesOptimizer());
        QCOMPARE(report.counted("copies between GPUs") > 0, !nccl);
        RunOptions onHost;
        onHost.steps = 2;
        QVERIFY(nearlyEqual(gpu.losses, run(design, onHost).losses));
    }

    void weightsThatAreUpdatedAmidTheStepAreReadInTheirVersions_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<bool>("nccl");
        bool nccl = false; // each in one of the ways
        int number = 1;
        for (const char* family :
             {"pipedream", "pipedream-2bw", "pipeoptim", "spectrain", "xpipe", "dp", "cdp-v1", "cdp-v2"}) {
            if (!leftOut(number++))
                QTest::addRow("%s, %s", family, nccl ? "NCCL" : "copies") << QByteArray(family) << nccl;
            nccl = !nccl;
        }
    }
    void weightsThatAreUpdatedAmidTheStepAreReadInTheirVersions()
    {
        QFETCH(QByteArray, family);
        QFETCH(bool, nccl);
        const Design design = smallGpt(family.toStdString());
        RunOptions options = onStandInGpus(nccl ? CudaTransport::Nccl : CudaTransport::Copy);
        options.runtime.captureBlocks = true; // not of these: every step predicts from another version
        const RunResult gpu = run(design, options);
        RunOptions onHost;
        onHost.steps = 2;
        QVERIFY(nearlyEqual(gpu.losses, run(design, onHost).losses));
        QVERIFY(std::any_of(gpu.notes.begin(), gpu.notes.end(),
                            [](const Diagnostic& note) { return note.where == "weights"; }));
    }

    void theTraceHoldsEveryBlockWithTheTimesOfItsStreamAndItsKernels()
    {
        const QTemporaryDir folder;
        RunOptions options = onStandInGpus();
        options.createBackend = withRecorder;
        options.trace = folder.filePath("gpu.db").toStdString();
        const RunResult result = run(smallGpt("1f1b"), options);
        QCOMPARE(result.droppedRecords, 0);
        SQLite::Database trace(options.trace);
        const auto number = [&](const std::string& query) { return trace.execAndGet(query).getInt64(); };
        const auto tasks = number("SELECT count(*) FROM TASKS");
        QVERIFY(tasks > 0);
        for (int step = 0; step < 2; ++step)
            QCOMPARE(number("SELECT count(*) FROM RECORDS WHERE step = " + std::to_string(step)), tasks);
        QCOMPARE(number("SELECT count(*) FROM RECORDS WHERE end < start"), 0);
        // A device does one block at a time.
        QCOMPARE(
            number(
                "SELECT count(*) FROM RECORDS a JOIN RECORDS b USING (step, deviceId) JOIN TASKS s ON s.taskId = "
                "a.taskId "
                "JOIN TASKS t ON t.taskId = b.taskId WHERE s.kind IN ('compute', 'update') AND t.kind IN ('compute', "
                "'update') AND a.taskId < b.taskId AND a.start < b.end AND b.start < a.end"),
            0);
        // Every block's kernels are known as its own.
        QCOMPARE(
            number(
                "SELECT count(DISTINCT g.taskId) FROM CUPTI_ACTIVITY_KIND_KERNEL g JOIN TASKS t USING (taskId) WHERE "
                "t.kind = 'compute'"),
            number("SELECT count(*) FROM TASKS WHERE kind = 'compute'"));
    }

    void withoutCuptiBlocksAreStillTimed()
    {
        const QTemporaryDir folder;
        standInTable().startActivities(test::standInLibrary("CUPTI").c_str()); // once, unless another test has
        standInTable().stopActivities();
        RunOptions options = onStandInGpus();
        options.createBackend = withRecorder;
        options.trace = folder.filePath("gpu.db").toStdString();
        const RunResult result = run(smallGpt("gpipe"), options);
        const auto told = std::find_if(result.notes.begin(), result.notes.end(),
                                       [](const Diagnostic& note) { return note.where == "trace"; });
        QVERIFY(told != result.notes.end());
        CONTAINS(told->what, "this process has recorded already");
        SQLite::Database trace(options.trace);
        QVERIFY(trace.execAndGet("SELECT count(*) FROM RECORDS").getInt64() > 0);
        QVERIFY(!trace.tableExists("CUPTI_ACTIVITY_KIND_KERNEL"));
    }

    void syntheticBlocksTakeTheirTimeOnTheDevice()
    {
        const Design design = test::evenDesign({.forward = 2'000'000,
                                                .inputGrad = 2'000'000,
                                                .weightGrad = 2'000'000,
                                                .transfer = 1'000'000,
                                                .saved = 1 << 12,
                                                .savedForWeightGrad = 1 << 11},
                                               test::familySchedule("1f1b", 2, 4));
        RunOptions options = onStandInGpus();
        options.steps = 1;
        options.maths = RunOptions::Maths::Synthetic;
        const RunResult result = run(design, options);
        QCOMPARE(result.maths, std::string("synthetic"));
        QVERIFY(result.stepTimes.front() >= 4 * 6'000'000); // the least that one device's blocks take
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        const auto isAboutBuses = [](const Diagnostic& note) { return note.where == "costs.link.bus"; };
        QVERIFY(std::none_of(result.notes.begin(), result.notes.end(), isAboutBuses));
        // Only the host emulates buses: a run that cannot says so.
        Design shared = design;
        shared.costs.link.bus = "switch";
        const RunResult alone = run(shared, options);
        const auto told = std::find_if(alone.notes.begin(), alone.notes.end(), isAboutBuses);
        QVERIFY(told != alone.notes.end());
        CONTAINS(told->what, "transfers do not wait for switch");
        options.createBackend = {};
        options.backend = "host";
        const std::vector<Diagnostic> host = run(shared, options).notes;
        QVERIFY(std::none_of(host.begin(), host.end(), isAboutBuses));
    }

    void aStuckScheduleEndsAtItsDeadlineAndNamesWhoWaits_data()
    {
        QTest::addColumn<int>("transport");
        QTest::newRow("copy") << int(CudaTransport::Copy);
        QTest::newRow("NCCL") << int(CudaTransport::Nccl);
    }
    void aStuckScheduleEndsAtItsDeadlineAndNamesWhoWaits()
    {
        QFETCH(int, transport);
        RunOptions options = onStandInGpus(CudaTransport(transport));
        options.runtime.deadline = 3'000'000'000; // more than any block takes
        options.runtime.faults = {{.kind = Fault::Kind::LinkStalls, .device = 0, .step = 1, .instruction = 0}};
        const std::string why = test::faultOf([&] { run(smallGpt("1f1b"), options); });
        CONTAINS(why, "no device has made progress");
        CONTAINS(why, "device 1");
    }

    void faultsOnADeviceAreNamed()
    {
        RunOptions options = onStandInGpus();
        options.runtime.faults = {{.kind = Fault::Kind::OutOfMemory, .device = 1, .step = 1, .instruction = 2}};
        CONTAINS(test::faultOf([&] { run(smallGpt("1f1b"), options); }), "device 1");
    }

    void devicesThatTakeTurnsHandTheirStatesOn_data()
    {
        QTest::addColumn<bool>("sharded");
        QTest::addColumn<bool>("nccl");
        for (const bool sharded : {false, true})
            for (const bool nccl : {false, true})
                if (!threadSanitized || sharded != nccl)
                    QTest::addRow("%s, %s", sharded ? "sharded" : "workers", nccl ? "NCCL" : "copies")
                        << sharded << nccl;
    }
    /// Whoever updates a stage keeps its states, and what others read of them comes over links.
    void devicesThatTakeTurnsHandTheirStatesOn()
    {
        QFETCH(bool, sharded);
        QFETCH(bool, nccl);
        FamilyParameters p = test::sized(3, 3);
        p.layout = sharded ? WorkerLayout::Sharded : WorkerLayout::Workers;
        Design design = smallGpt("cdp-v2", 3, 3);
        design.schedule = makeSchedule("cdp-v2", p);
        QCOMPARE(design.schedule.shardedStates, sharded);
        design.layersPerStage = evenPartition(*design.workload, design.schedule.stages());
        design.costs = uniformCosts({}, design.schedule.stages(), design.schedule.chunks());
        const RunResult gpu = run(design, onStandInGpus(nccl ? CudaTransport::Nccl : CudaTransport::Copy));
        QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
        RunOptions onHost;
        onHost.steps = 2;
        QVERIFY(nearlyEqual(gpu.losses, run(design, onHost).losses));
    }

    void attentionKeepsOneNumberPerQueryOnAGpu()
    {
        if (threadSanitized)
            QSKIP("it is about bytes, and takes long");
        Design design = test::tinyGpt("1f1b", 2, 2); // whose sequences are long enough to tell
        RunOptions onHost;
        onHost.steps = 1;
        RunOptions onGpus = onStandInGpus();
        onGpus.steps = 1;
        const RunResult host = run(design, onHost), gpu = run(design, onGpus);
        const auto told = [](const RunResult& result) {
            return std::any_of(result.notes.begin(), result.notes.end(),
                               [](const Diagnostic& note) { return note.where == "model.attention"; });
        };
        QVERIFY(!told(host));
        QVERIFY(told(gpu));
        QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
        for (std::size_t d = 0; d < 2; ++d)
            QVERIFY(gpu.peakBytes[d] < host.peakBytes[d]);
        // A design that is written for a GPU says so beforehand; on the host it needs more.
        design.workload->shape.attention = AttentionMemory::Streamed;
        design.workload = makeWorkload(design.workload->shape, design.workload->optimizer, "test");
        const RunResult written = run(design, onGpus), back = run(design, onHost);
        QVERIFY(!told(written));
        QVERIFY(told(back));
        QCOMPARE(written.peakBytes, gpu.peakBytes);
        QCOMPARE(back.peakBytes, host.peakBytes);
        QCOMPARE(written.losses, gpu.losses);
        QCOMPARE(back.losses, host.losses);
        QVERIFY(nearlyEqual(gpu.losses, host.losses));
    }

    void whatIsAllocatedIsWhatWasToldBeforehand_data()
    {
        QTest::addColumn<int>("transport"); // -1: the host
        QTest::addColumn<int>("storedSends");
        const int copy = int(CudaTransport::Copy), nccl = int(CudaTransport::Nccl);
        if (!threadSanitized)
            QTest::newRow("copies") << copy << 0;
        QTest::newRow("copies, two sends on their way") << copy << 2;
        QTest::newRow("NCCL, which stores none") << nccl << 2;
        QTest::newRow("the host") << -1 << 0;
        QTest::newRow("the host, two sends on their way") << -1 << 2;
    }
    /// To the byte, and all that the GPUs were asked for.
    void whatIsAllocatedIsWhatWasToldBeforehand()
    {
        QFETCH(int, transport);
        QFETCH(int, storedSends);
        const bool onGpus = transport >= 0;
        RunOptions options = onGpus ? onStandInGpus(CudaTransport(transport)) : RunOptions{};
        options.runtime.eagerSlots = storedSends;
        options.steps = 2;
        const RunResult result = run(smallGpt("1f1b"), options);
        const StandInReports report = test::standInReport();
        QCOMPARE(result.heldBytes.size(), std::size_t{2});
        QCOMPARE(result.memory.size(), std::size_t{2});
        if (onGpus)
            QCOMPARE(report.most("bytes of device memory"), double(result.heldBytes[0] + result.heldBytes[1]));
        for (std::size_t d = 0; d < 2; ++d) {
            const HeldMemory& told = result.memory[d];
            QCOMPARE(result.heldBytes[d], told.total());
            QCOMPARE(told.peak, result.peakBytes[d]);
            QCOMPARE(told.maths, onGpus ? Bytes{PIPEWRIGHT_MATHS_WORKSPACE} : Bytes{0});
            QCOMPARE(told.text > 0, onGpus); // one has the embedding, the other the head
            const bool nccl = transport == int(CudaTransport::Nccl);
            QCOMPARE(told.links > 0, !nccl && (onGpus || storedSends > 0));
            QCOMPARE(told.links >= 2 * 4 * 16 * 4, !nccl && storedSends > 0); // two activations
        }
        const Diagnostics none = whyNotAsPredicted(result.memory, result.heldBytes);
        QVERIFY(none.empty());
        const Diagnostics more =
            whyNotAsPredicted(result.memory, std::vector{result.heldBytes[0], result.heldBytes[1] + 1});
        QCOMPARE(more.size(), std::size_t{1});
        QVERIFY(more.front().severity == Severity::Warning);
        QCOMPARE(more.front().where, std::string("device 1"));
    }

    /// The workspace of its maths decides as much as the buffers do.
    void aGpuThatHasNoRoomIsNamedBeforeAnythingIsAllocated()
    {
        RunOptions options = onStandInGpus();
        options.runtime.deviceMemory = PIPEWRIGHT_MATHS_WORKSPACE; // more than enough for the buffers alone
        const std::string why = test::faultOf([&] { run(smallGpt("1f1b"), options); });
        CONTAINS(why, "device 0: error: would hold");
        CONTAINS(why, "device 1: error: would hold");
        CONTAINS(why, "33 MiB for its maths");
        // Two devices fit on each GPU by themselves, and not together.
        options.runtime.deviceMemory = 0;
        PipewrightCudaTable table = standInTable();
        table.deviceInfo = [](std::int32_t device, PipewrightCudaDevice* info) {
            const int code = standInTable().deviceInfo(device, info);
            info->memory = PIPEWRIGHT_MATHS_WORKSPACE + (1 << 20);
            return code;
        };
        options = onStandInGpus(CudaTransport::Automatic, table);
        const std::string shared = test::faultOf([&] { run(smallGpt("1f1b", 4, 4), options); });
        const std::string alone = test::faultOf([&] { run(smallGpt("1f1b"), options); });
        CONTAINS(shared, "devices 0, 2: error: would hold together");
        CONTAINS(shared, "devices 1, 3: error: would hold together");
        QCOMPARE(alone, std::string());
    }

    void aClassifierTrainsToTheReference()
    {
        DesignRequest request = test::requestFor("chimera", 2, 4);
        request.model = "byte-mlp";
        request.microbatchSize = 2;
        const Design design = makeDesign(request);
        RunOptions onHost;
        onHost.steps = 2;
        const RunResult gpu = run(design, onStandInGpus());
        QVERIFY(gpu.gradients && gpu.gradients->holds());
        QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
        QVERIFY(nearlyEqual(gpu.losses, run(design, onHost).losses));
    }

    /// NCCL connects when a kind of collective is first used, which would else be in a step.
    void everyKindOfCollectiveIsWarmedUp()
    {
        CudaSetup setup = test::standInSetup(3);
        setup.transport = CudaTransport::Nccl;
        const auto backend = createCudaBackend(standInTable(), setup);
        const auto group = backend->createCommunicators();
        QCOMPARE(group.size(), std::size_t{3});
        StandInReports report = test::standInReport();
        for (const char* kind : {"all-reduces", "all-gathers", "reduce-scatters", "broadcasts", "reduces"})
            QCOMPARE(report.counted(QString("%1 of NCCL").arg(kind)), 3.0 * 2); // a small and a large one of each
        const auto sum = backend->createPairSum(0, 1, 1); // for which the others would only take memory
        report = test::standInReport();
        QCOMPARE(report.counted("all-reduces of NCCL"), 5.0 * 2);
        QCOMPARE(report.counted("all-gathers of NCCL"), 3.0 * 2);
    }

    void ncclThatIsMissingOrDoesNotConnectIsSaid()
    {
        CudaSetup setup = test::standInSetup(2);
        setup.transport = CudaTransport::Nccl;
        const std::string nccl = std::exchange(setup.nccl, {});
        CONTAINS(test::faultOf([&] { createCudaBackend(standInTable(), setup); }), "NCCL was not found");
        setup.nccl = nccl;
        setup.deadline = 50'000'000;
        const auto backend = createCudaBackend(test::tableWithoutGpu1InNccl(), setup);
        for (const std::string& why : {test::faultOf([&] { backend->createCommunicators(); }),
                                       test::faultOf([&] { backend->createPairSum(0, 1, 1); })})
            CONTAINS(why, "not all of the GPUs 0, 1 have come within 50 ms");
        setup.deadline = 30'000'000'000;
        QCOMPARE(createCudaBackend(standInTable(), setup)->createCommunicators().size(), std::size_t{2});
    }

    void stagesThatRecomputeTrainToTheReference_data()
    {
        QTest::addColumn<bool>("graphs");
        if (!threadSanitized)
            QTest::newRow("launched") << false;
        QTest::newRow("captured") << true;
    }
    void stagesThatRecomputeTrainToTheReference()
    {
        QFETCH(bool, graphs);
        for (const Recompute recompute :
             {Recompute::BlockSelective, Recompute::Block, Recompute::Selective, Recompute::Full}) {
            Design design = smallGpt("zb-h1");
            design = withRecompute(design, std::vector(design.schedule.deviceOfStage.size(), recompute));
            RunOptions options = onStandInGpus();
            options.runtime.captureBlocks = graphs;
            const RunResult gpu = run(design, options);
            QCOMPARE(gpu.maths, std::string("training"));
            QVERIFY(gpu.gradients && gpu.gradients->holds());
            QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
        }
    }

    void stagesThatOffloadTrainToTheReference_data() { stagesThatRecomputeTrainToTheReference_data(); }
    void stagesThatOffloadTrainToTheReference()
    {
        QFETCH(bool, graphs);
        for (const char* family : {"gpipe", "zb-h1"}) {
            Design design = smallGpt(family, 2, 4);
            design.costs.hostLink = LinkCosts{0, 1e12};
            design = withOffload(design, std::vector<bool>(design.schedule.deviceOfStage.size(), true));
            RunOptions options = onStandInGpus();
            options.runtime.captureBlocks = graphs;
            const RunResult gpu = run(design, options);
            QCOMPARE(gpu.maths, std::string("training"));
            QVERIFY(gpu.gradients && gpu.gradients->holds());
            QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
            QCOMPARE(gpu.hostBytes, gpu.predictedHostBytes);
            QVERIFY(gpu.hostBytes[0] > 0);
            QCOMPARE(gpu.droppedRecords, 0);
        }
    }
};

PIPEWRIGHT_TEST(TestCudaRun, QCoreApplication)
#include "tst_cudarun.moc"
