// SPDX-License-Identifier: GPL-3.0-or-later
// Whole designs on the CUDA backend, over GPUs that are pretended: what is tested is the way from the Program to
// streams, events, captures and links, not the kernels, which are the host's here.
#include "core/design/designbuilder.h"
#include "core/design/stagecosts.h"
#include "core/program/compile.h"
#include "core/schedule/replicas.h"
#include "executor/cuda/cudabackend.h"
#include "executor/cuda/gpushares.h"
#include "executor/cuda/pretendedruns.h"
#include "executor/run/run.h"
#include "executor/runtime/collectives.h"
#include "executor/runtime/plan.h"
#include "executor/runtime/timedwork.h"
#include "makers/faults.h"
#include "makers/models.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>
#include <SQLiteCpp/SQLiteCpp.h>

#include <numeric>

using namespace pipewright;

using pretended::onPretendedGpus;
using pretended::setupFor;

namespace {

Design tinyGpt(std::string_view family, int devices = 2, int microbatches = 4)
{
    return test::tinyGpt(family, devices, microbatches);
}

#define CONTAINS(text, part) QVERIFY2((text).find(part) != std::string::npos, (text).c_str())

} // namespace

class TestCudaRun : public QObject {
    Q_OBJECT

private slots:
    void trainsToTheBitsOfTheReference_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("transport");
        QTest::addColumn<bool>("graphs");
        QTest::addColumn<int>("replicas");
        const int copy = int(CudaTransport::Copy), nccl = int(CudaTransport::Nccl);
        QTest::addRow("1F1B, a reduction between GPUs") << QByteArray("1f1b") << 2 << copy << false << 1;
        QTest::addRow("split backward") << QByteArray("zb-h1") << 3 << copy << false << 1;
        QTest::addRow("values that stay on a device") << QByteArray("zb-v") << 2 << copy << true << 1;
        QTest::addRow("pieces of sequences") << QByteArray("seq1f1b") << 3 << copy << false << 1;
        QTest::addRow("pieces of sequences, captured") << QByteArray("seq1f1b") << 2 << copy << true << 1;
        QTest::addRow("two replicas, captured") << QByteArray("chimera") << 4 << copy << true << 1;
        QTest::addRow("NCCL") << QByteArray("1f1b") << 2 << nccl << false << 1;
        QTest::addRow("NCCL, two replicas' gradients") << QByteArray("chimera") << 4 << nccl << true << 1;
        QTest::addRow("two copies of a pipeline, captured") << QByteArray("zb-h1") << 4 << copy << true << 2;
        QTest::addRow("NCCL, four copies of one device") << QByteArray("1f1b") << 4 << nccl << false << 4;
        QTest::addRow("NCCL, four devices on two GPUs, captured")
            << QByteArray("interleaved-1f1b") << 4 << nccl << true << 1;
    }
    void trainsToTheBitsOfTheReference()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, devices);
        QFETCH(int, transport);
        QFETCH(bool, graphs);
        QFETCH(int, replicas);
        Design design = tinyGpt(family.toStdString(), devices / replicas);
        design.schedule = withReplicas(design.schedule, replicas);
        RunOptions options = onPretendedGpus(CudaTransport(transport));
        options.runtime.captureBlocks = graphs;
        const int launchesBefore = pretended::graphLaunches, sumsBefore = pretended::collectives;
        const RunResult gpu = run(design, options);
        QCOMPARE(gpu.backend, std::string("cuda"));
        QCOMPARE(gpu.maths, std::string("training"));
        QVERIFY(gpu.gradients && gpu.gradients->bitEqual);
        QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
        // The second step captures every block, and it and the third launch them.
        const int blocks =
            static_cast<int>(std::accumulate(design.schedule.order.begin(), design.schedule.order.end(), std::size_t{0},
                                             [](std::size_t sum, const auto& list) { return sum + list.size(); }));
        QCOMPARE(pretended::graphLaunches - launchesBefore, graphs ? 2 * blocks : 0);
        // Whatever two GPUs add up, NCCL adds up, both taking part.
        QCOMPARE(pretended::collectives > sumsBefore, CudaTransport(transport) == CudaTransport::Nccl);
        QCOMPARE(pretended::disagreements.load(), 0);
        RunOptions onHost;
        onHost.steps = 3;
        QCOMPARE(gpu.losses, run(design, onHost).losses);
    }

    /// So that a stage's gradients are added up while the device still works on another stage.
    void sumsArePostedRightBehindTheLastBlockOfTheirStage()
    {
        const Design design = trainableDesign(tinyGpt("chimera", 4, 8));
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        std::vector<std::vector<BufferLife>> lives;
        for (int d = 0; d < 4; ++d)
            lives.push_back(lifetimes(program, d));
        TimedWork work({}, TimedWork::Pace::Virtual);
        const Plan plan = planRun(program, std::vector<Region>(program.buffers.size()), lives, work);
        int beside = 0, posted = 0, late = 0; // late: behind another sum of the same values
        for (std::size_t d = 0; d < plan.devices.size(); ++d) {
            const DevicePlan& device = plan.devices[d];
            std::size_t lastBlock = 0;
            for (std::size_t i = 0; i < device.instructions.size(); ++i)
                if (device.instructions[i].kind == InstructionKind::Compute)
                    lastBlock = i;
            for (std::size_t i = 0; i < device.instructions.size(); ++i) {
                late += device.instructions[i].postsSum;
                for (auto p = device.instructions[i].posts.begin; p < device.instructions[i].posts.end; ++p) {
                    const TaskId sum = plan.sums[device.posts[p]].task;
                    const auto& [root, other] = plan.reductions.at(sum);
                    const Task& block = program.tasks[device.instructions[i].task];
                    const Buffer& own = program.tasks[sum].device == int(d) ? *root.description : *other.description;
                    QCOMPARE(int(block.stage), int(own.stage));
                    for (std::size_t later = i + 1; later < device.instructions.size(); ++later)
                        if (device.instructions[later].kind == InstructionKind::Compute) {
                            const Task& after = program.tasks[device.instructions[later].task];
                            QVERIFY(after.stage != own.stage || after.replica != own.replica);
                        }
                    ++posted;
                    beside += i < lastBlock;
                }
            }
        }
        QCOMPARE(posted + late, 2 * int(plan.sums.size()));
        QVERIFY2(beside >= 4, qPrintable(QString("%1 of %2").arg(beside).arg(posted)));
    }

    void weightsThatAreUpdatedAmidTheStepAreReadInTheirVersions_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<bool>("nccl");
        for (const char* family :
             {"pipedream", "pipedream-2bw", "pipeoptim", "spectrain", "xpipe", "dp", "cdp-v1", "cdp-v2"})
            for (const bool nccl : {false, true})
                QTest::addRow("%s, %s", family, nccl ? "NCCL" : "copies") << QByteArray(family) << nccl;
    }
    void weightsThatAreUpdatedAmidTheStepAreReadInTheirVersions()
    {
        QFETCH(QByteArray, family);
        QFETCH(bool, nccl);
        const Design design = tinyGpt(family.toStdString());
        RunOptions options = onPretendedGpus(nccl ? CudaTransport::Nccl : CudaTransport::Copy);
        options.runtime.captureBlocks = true; // not of these: every step predicts from another version
        const RunResult gpu = run(design, options);
        RunOptions onHost;
        onHost.steps = 3;
        QCOMPARE(gpu.losses, run(design, onHost).losses);
        QCOMPARE(gpu.notes.back().where, std::string("weights"));
    }

    void theTraceHoldsEveryBlockWithTheTimesOfItsStreamAndItsKernels()
    {
        const QTemporaryDir folder;
        RunOptions options = onPretendedGpus();
        options.trace = folder.filePath("gpu.db").toStdString();
        const RunResult result = run(tinyGpt("1f1b"), options);
        QCOMPARE(result.droppedRecords, 0);
        SQLite::Database trace(options.trace);
        const auto number = [&](const std::string& query) { return trace.execAndGet(query).getInt64(); };
        const auto tasks = number("SELECT count(*) FROM TASKS");
        QVERIFY(tasks > 0);
        for (int step = 0; step < 3; ++step)
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
        RunOptions options;
        options.createBackend = [](int devices) {
            CudaSetup setup = setupFor(devices);
            setup.cupti = "taken";
            return createCudaBackend(pretended::table(), setup);
        };
        options.trace = folder.filePath("gpu.db").toStdString();
        const RunResult result = run(tinyGpt("gpipe"), options);
        const auto told = std::find_if(result.notes.begin(), result.notes.end(),
                                       [](const Diagnostic& note) { return note.where == "trace"; });
        QVERIFY(told != result.notes.end());
        CONTAINS(told->what, "another profiler is attached");
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
        RunOptions options = onPretendedGpus();
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
        RunOptions options = onPretendedGpus(CudaTransport(transport));
        options.runtime.deadline = 200'000'000;
        options.runtime.faults = {{.kind = Fault::Kind::LinkStalls, .device = 0, .step = 1, .instruction = 0}};
        const std::string why = test::faultOf([&] { run(tinyGpt("1f1b"), options); });
        CONTAINS(why, "no device has made progress");
        CONTAINS(why, "device 1");
    }

    void faultsOnADeviceAreNamed()
    {
        RunOptions options = onPretendedGpus();
        options.runtime.faults = {{.kind = Fault::Kind::OutOfMemory, .device = 1, .step = 1, .instruction = 2}};
        CONTAINS(test::faultOf([&] { run(tinyGpt("1f1b"), options); }), "device 1");
    }

    void devicesThatTakeTurnsHandTheirStatesOn_data()
    {
        QTest::addColumn<bool>("sharded");
        QTest::addColumn<bool>("nccl");
        for (const bool sharded : {false, true})
            for (const bool nccl : {false, true})
                QTest::addRow("%s, %s", sharded ? "sharded" : "workers", nccl ? "NCCL" : "copies") << sharded << nccl;
    }
    /// Whoever updates a stage keeps its states, and what others read of them comes over links.
    void devicesThatTakeTurnsHandTheirStatesOn()
    {
        QFETCH(bool, sharded);
        QFETCH(bool, nccl);
        FamilyParameters p = test::sized(3, 6);
        p.layout = sharded ? WorkerLayout::Sharded : WorkerLayout::Workers;
        Design design = tinyGpt("cdp-v2", 3, 6);
        design.schedule = makeSchedule("cdp-v2", p);
        QCOMPARE(design.schedule.shardedStates, sharded);
        design.layersPerStage = evenPartition(*design.workload, design.schedule.stages());
        design.costs = uniformCosts({}, design.schedule.stages(), design.schedule.chunks());
        const RunResult gpu = run(design, onPretendedGpus(nccl ? CudaTransport::Nccl : CudaTransport::Copy));
        QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
        RunOptions onHost;
        onHost.steps = 3;
        QCOMPARE(gpu.losses, run(design, onHost).losses);
    }

    void attentionKeepsOneNumberPerQueryOnAGpu()
    {
        Design design = tinyGpt("1f1b");
        RunOptions onHost;
        onHost.steps = 2;
        RunOptions onGpus = onPretendedGpus();
        onGpus.steps = 2;
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
        for (const RunResult& result : {gpu, written, back})
            QCOMPARE(result.losses, host.losses);
    }

    void whatIsAllocatedIsWhatWasToldBeforehand_data()
    {
        QTest::addColumn<int>("transport"); // -1: the host
        QTest::addColumn<int>("storedSends");
        const int copy = int(CudaTransport::Copy), nccl = int(CudaTransport::Nccl);
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
        RunOptions options = onGpus ? onPretendedGpus(CudaTransport(transport)) : RunOptions{};
        options.runtime.eagerSlots = storedSends;
        options.steps = 2;
        pretended::allocated().most = pretended::allocated().now;
        const RunResult result = run(tinyGpt("1f1b"), options);
        QCOMPARE(result.heldBytes.size(), std::size_t{2});
        QCOMPARE(result.memory.size(), std::size_t{2});
        if (onGpus)
            QCOMPARE(pretended::allocated().most, result.heldBytes[0] + result.heldBytes[1]);
        QCOMPARE(pretended::allocated().now, 0);
        for (std::size_t d = 0; d < 2; ++d) {
            const HeldMemory& told = result.memory[d];
            QCOMPARE(result.heldBytes[d], told.total());
            QCOMPARE(told.peak, result.peakBytes[d]);
            QCOMPARE(told.maths, onGpus ? Bytes{PIPEWRIGHT_MATHS_WORKSPACE} : Bytes{0});
            QCOMPARE(told.text > 0, onGpus); // one has the embedding, the other the head
            const bool nccl = transport == int(CudaTransport::Nccl);
            QCOMPARE(told.links > 0, !nccl && (onGpus || storedSends > 0));
            QCOMPARE(told.links >= 2 * 1024, !nccl && storedSends > 0); // two activations of 8·2·16 numbers
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
        pretended::allocated().most = pretended::allocated().now;
        RunOptions options = onPretendedGpus();
        options.runtime.deviceMemory = PIPEWRIGHT_MATHS_WORKSPACE; // more than enough for the buffers alone
        const std::string why = test::faultOf([&] { run(tinyGpt("1f1b"), options); });
        CONTAINS(why, "device 0: error: would hold");
        CONTAINS(why, "device 1: error: would hold");
        CONTAINS(why, "33 MiB for its maths");
        // Two devices fit on each GPU by themselves, and not together.
        options.runtime.deviceMemory = 0;
        pretended::memory = PIPEWRIGHT_MATHS_WORKSPACE + (1 << 20);
        const std::string shared = test::faultOf([&] { run(tinyGpt("1f1b", 4), options); });
        const std::string alone = test::faultOf([&] { run(tinyGpt("1f1b", 2), options); });
        pretended::memory = std::int64_t{1} << 34;
        CONTAINS(shared, "devices 0, 2: error: would hold together");
        CONTAINS(shared, "devices 1, 3: error: would hold together");
        QCOMPARE(alone, std::string());
    }

    void aClassifierTrainsToTheBitsOfTheReference()
    {
        DesignRequest request = test::requestFor("chimera", 2, 4);
        request.model = "byte-mlp";
        request.microbatchSize = 2;
        const Design design = makeDesign(request);
        RunOptions onHost;
        onHost.steps = 3;
        const RunResult gpu = run(design, onPretendedGpus());
        QVERIFY(gpu.gradients && gpu.gradients->bitEqual);
        QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
        QCOMPARE(gpu.losses, run(design, onHost).losses);
    }

    void devicesAreSpreadOverGpusAndSlices()
    {
        const PipewrightCudaDevice gpu{"", 0, 132, 9, 0, 3, ""};
        const auto one = gpuSharesFor({}, 4, {gpu});
        QCOMPARE(one, std::vector<GpuShare>(4, {0, 32}));
        QCOMPARE(gpuSharesFor({}, 2, {gpu, gpu}), (std::vector<GpuShare>{{0, 0}, {1, 0}}));
        QCOMPARE(gpuSharesFor({}, 3, {gpu, gpu}), (std::vector<GpuShare>{{0, 64}, {1, 0}, {0, 64}}));
        QCOMPARE(gpuSharesFor({{0, 100}, {0, 32}}, 2, {gpu}), (std::vector<GpuShare>{{0, 100}, {0, 32}}));
        CONTAINS(test::faultOf([&] {
                     gpuSharesFor({{0, 100}, {0, 33}}, 2, {gpu});
                 }),
                 "devices 0, 1 want 100 + 33 multiprocessors of GPU 0, which has 132 (give them at most 64 each");
        CONTAINS(test::faultOf([&] { gpuSharesFor({{1, 0}}, 1, {gpu}); }), "device 0 is to run on GPU 1");
        CONTAINS(test::faultOf([&] { gpuSharesFor({{0, 0}}, 2, {gpu}); }), "says where 1 devices run");
    }

    /// Slices of 100 and 32 are 132, but the GPU is cut in eights: only the driver can say.
    void whatAMappingWantsTooMuchIsKnownFromTheListOfGpus()
    {
        const PipewrightCudaDevice hopper{"", 0, 132, 9, 0, 3, ""}, ampere{"", 0, 108, 8, 0, 3, ""};
        QVERIFY(whyNotPlaced({}, 4, {hopper}).empty());
        QVERIFY(whyNotPlaced({{0, 64}, {0, 64}}, 2, {hopper}).empty());
        QVERIFY(whyNotPlaced({{0, 54}, {0, 54}}, 2, {ampere}).empty()); // in twos
        const Diagnostics doubt = whyNotPlaced({{0, 100}, {0, 32}}, 2, {hopper});
        QCOMPARE(doubt.size(), std::size_t{1});
        QVERIFY(doubt.front().severity == Severity::Warning);
        CONTAINS(doubt.front().what, "cut in steps of 8: that takes 136 of its 132");
        const Diagnostics all = whyNotPlaced({{0, 200}, {1, 80}, {1, 60}, {3, 0}}, 4, {hopper, ampere});
        QCOMPARE(all.size(), std::size_t{3});
        QCOMPARE(all[0].where, std::string("cluster.gpus[3]"));
        CONTAINS(all[1].what, "device 0 wants 200 multiprocessors of GPU 0, which has 132");
        CONTAINS(all[1].hint, "give it at most 128");
        CONTAINS(all[2].what, "devices 1, 2 want 80 + 60 multiprocessors of GPU 1, which has 108");
        CONTAINS(all[2].hint, "at most 54 each");
    }

    void ncclThatIsMissingOrDoesNotConnectIsSaid()
    {
        CudaSetup setup = setupFor(2);
        setup.transport = CudaTransport::Nccl;
        CONTAINS(test::faultOf([&] { createCudaBackend(pretended::table(), setup); }), "NCCL was not found");
        setup.nccl = "libnccl.so.2";
        setup.deadline = 50'000'000;
        pretended::absentGpu = 1;
        const auto backend = createCudaBackend(pretended::table(), setup);
        for (const std::string& why : {test::faultOf([&] { backend->createCommunicators(); }),
                                       test::faultOf([&] { backend->createPairSum(0, 1, 1); })})
            CONTAINS(why, "not all of the GPUs 0, 1 have come within 50 ms");
        pretended::absentGpu = -1;
        QCOMPARE(backend->createCommunicators().size(), std::size_t{2});
    }
};

PIPEWRIGHT_TEST(TestCudaRun, QCoreApplication)
#include "tst_cudarun.moc"
