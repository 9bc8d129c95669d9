// SPDX-License-Identifier: GPL-3.0-or-later
// Several ranks in one process, with sockets between them: barriers, failures, lost ranks, whole runs on the host and
// on a pretended GPU each.
#include "core/predict/predict.h"
#include "core/schedule/replicas.h"
#include "core/workload/transformer.h"
#include "executor/cuda/pretendedgpu.h"
#include "executor/mpi/launch.h"
#include "executor/mpi/rankbackend.h"
#include "executor/mpi/rankhub.h"
#include "executor/mpi/socketmesh.h"
#include "executor/run/run.h"
#include "makers/models.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

using namespace pipewright;

namespace {

constexpr Nanoseconds deadline = 20'000'000'000;

/// Runs `action(rank)` on a thread per rank, and returns what each threw.
template<typename Action>
std::vector<std::string> onAll(int ranks, Action action)
{
    std::vector<std::string> failures(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] {
            try {
                action(r);
            } catch (const Error& error) {
                failures[r] = error.what();
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    return failures;
}

std::vector<std::unique_ptr<RankHub>> hubs(int ranks, Nanoseconds limit = deadline)
{
    auto meshes = createLocalMeshes(ranks);
    std::vector<std::unique_ptr<RankHub>> all(meshes.size());
    onAll(ranks, [&](int r) { all[r] = std::make_unique<RankHub>(std::move(meshes[r]), limit); });
    return all;
}

using Meshes = std::vector<std::unique_ptr<Mesh>>;

/// Rank r's backend, with a GPU of its own.
std::function<std::unique_ptr<Backend>(int)> gpuRank(Meshes& meshes, int r, const char* nccl = "libnccl.so.2",
                                                     CudaSetup setup = {})
{
    return [&meshes, r, nccl, setup](int) mutable {
        setup.nccl = nccl;
        setup.cupti = "libcupti.so.13";
        return createRankBackend(std::move(meshes[r]), deadline, pretended::table(), setup);
    };
}

/// Whether all that the GPUs were given comes to an end when each of them does one thing at a time, and a thing is done
/// when both of its GPUs have come to it.
bool oneOrderFitsAllGpus()
{
    std::map<std::int32_t, std::deque<const pretended::Group*>> left;
    for (const pretended::Given& each : pretended::given())
        left[each.device].push_back(each.group);
    for (bool moved = true; moved;) {
        moved = false;
        for (auto& [a, mine] : left)
            for (auto& [b, theirs] : left)
                while (a < b && !mine.empty() && !theirs.empty() && mine.front() == theirs.front()) {
                    mine.pop_front();
                    theirs.pop_front();
                    moved = true;
                }
    }
    return std::all_of(left.begin(), left.end(), [](const auto& each) { return each.second.empty(); });
}

} // namespace

class TestRanks : public QObject {
    Q_OBJECT

private slots:
    void allLeaveAnAllReduceWithTheSame()
    {
        auto all = hubs(3);
        std::vector<StepShare> left(3);
        for (int round = 0; round < 50; ++round) {
            const auto failures = onAll(3, [&](int r) {
                left[r] = all[r]->allReduce({100 - r, 200 + r, 0.5 * r, r == 1 && round == 7});
            });
            QCOMPARE(failures, std::vector<std::string>(3));
            for (const StepShare& share : left) {
                QCOMPARE(share.start, 98);
                QCOMPARE(share.end, 202);
                QCOMPARE(share.loss, 1.5);
                QCOMPARE(share.cancelled, round == 7);
            }
        }
    }

    void whatWasPostedBeforeABarrierHasArrived()
    {
        auto all = hubs(3);
        std::vector<std::byte> large(3'000'000, std::byte{7});
        onAll(3, [&](int r) {
            all[r]->post(4, 5, large);
            all[r]->barrier();
        });
        const auto messages = all[0]->takeMessages();
        QCOMPARE(messages.size(), std::size_t{2});
        for (const PeerMessage& message : messages)
            QVERIFY(message.kind == 4 && message.number == 5 && message.bytes == large);
    }

    void aRankThatFailsTellsAllOthersWhy()
    {
        auto all = hubs(3);
        all[2]->fail("the loss is not a number");
        const auto failures = onAll(2, [&](int r) { all[r]->barrier(); });
        for (const std::string& failure : failures)
            QVERIFY2(failure.find("the process of device 2 ended the run: the loss is not a number")
                         != std::string::npos,
                     failure.c_str());
    }

    /// A process that fails says why and ends. Whoever has something to send to it just then must still read that.
    void whatARankSaidBeforeItEndedIsReadByThoseWhoWriteToIt()
    {
        struct Listener : MeshHandler {
            std::vector<Region> place(int, const Message&) override { return {}; }
            void received(int, const Message& message) override { heard.push_back(message.kind); }
            void sent(std::uint64_t) override {}
            void lost(int) override { heard.push_back(0); }
            std::vector<std::uint32_t> heard; ///< kinds of messages; 0: the other is gone
        };
        auto meshes = createLocalMeshes(2);
        Listener ends, stays;
        meshes[1]->send(0, {.kind = 7}, {}, 0);
        meshes[1]->poll(ends);
        meshes[1].reset();
        meshes[0]->send(1, {.kind = 8}, {}, 0);
        meshes[0]->poll(stays);
        meshes[0]->poll(stays);
        QCOMPARE(stays.heard, (std::vector<std::uint32_t>{7, 0}));
    }

    void aRankThatIsGoneIsNamed()
    {
        auto all = hubs(3);
        all[1]->cancel();
        all[1].reset(); // without a word of leave: its sockets end, as with its process
        for (int r : {0, 2})
            QTRY_VERIFY_WITH_TIMEOUT(all[r]->failureReason().find("device 1 (rank 1, process ") != std::string::npos,
                                     5000);
    }

    void aRankThatEndsAfterTheLastBarrierIsNoFailure()
    {
        auto all = hubs(3);
        onAll(3, [&](int r) { all[r]->barrier(); });
        all[1].reset();
        QTest::qWait(200);
        for (int r : {0, 2})
            QCOMPARE(all[r]->failureReason(), std::string());
    }

    void aRankMissingAtABarrierIsGivenUpAfterTheDeadline()
    {
        auto all = hubs(2, 200'000'000);
        const auto failures = onAll(1, [&](int r) { all[r]->barrier(); });
        QVERIFY2(failures[0].find("not every process has come to the end of the step") != std::string::npos,
                 failures[0].c_str());
    }

    void ranksTrainToTheBitsOfThreads_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<bool>("narrow");
        QTest::addColumn<int>("replicas");
        for (const int devices : {2, 4})
            for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "chimera", "gpipe"})
                QTest::addRow("%s, %d ranks", family, devices) << QByteArray(family) << devices << false << 1;
        for (const char* family : {"1f1b", "v-half"})
            QTest::addRow("two copies of %s", family) << QByteArray(family) << 4 << false << 2;
        for (const char* family : {"1f1b", "pipeoptim", "cdp-v2"})
            QTest::addRow("%s, bf16", family) << QByteArray(family) << 2 << true << 1;
    }
    void ranksTrainToTheBitsOfThreads()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, devices);
        QFETCH(bool, narrow);
        QFETCH(int, replicas);
        Design design = test::tinyGpt(family.toStdString(), devices / replicas, 8);
        design.schedule = withReplicas(design.schedule, replicas);
        if (narrow) {
            ModelShape shape = design.workload->shape;
            shape.dataType = DataType::Bf16;
            shape.widened = true;
            design.workload = makeWorkload(shape, design.workload->optimizer, "test");
        }
        RunOptions options;
        options.steps = 4;
        options.runtime.checkMemory = true;
        const RunResult threads = run(design, options);
        const QTemporaryDir folder;
        options.trace = folder.filePath("ranks.db").toStdString();
        auto meshes = createLocalMeshes(devices);
        std::vector<RunResult> results(static_cast<std::size_t>(devices));
        const auto failures = onAll(devices, [&](int r) {
            RunOptions own = options;
            own.runtime.eagerSlots = r % 2; // sending is each rank's own affair
            own.createBackend = [&, r](int) { return createRankBackend(std::move(meshes[r]), deadline); };
            results[r] = run(design, own);
        });
        QCOMPARE(failures, std::vector<std::string>(static_cast<std::size_t>(devices)));
        const RunResult& ranks = results[0];
        QVERIFY(ranks.speaks && !results[1].speaks);
        QCOMPARE(ranks.backend, std::string("mpi"));
        QCOMPARE(ranks.losses, threads.losses); // to the bit: every step depends on all before
        QVERIFY(ranks.gradients && ranks.gradients->bitEqual && threads.gradients->bitEqual);
        QCOMPARE(ranks.peakBytes, threads.peakBytes);
        for (std::size_t d = 0; d < std::size_t(devices); ++d) {
            QCOMPARE(ranks.heldBytes.at(d), ranks.memory.at(d).total());
            QCOMPARE(ranks.memory[d].links > 0, d % 2 == 1); // as its own process has it
            QCOMPARE(ranks.memory[d].text, Bytes{0});
        }
        QCOMPARE(ranks.droppedRecords, 0);
        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        const Program program = predict(reader.design()).program;
        for (int step = 0; step < options.steps; ++step) {
            const Timeline timeline = reader.timeline(program, step);
            for (TaskId task = 0; task < program.tasks.size(); ++task) {
                QVERIFY2(timeline.start[task] != notRun, program.label(task).c_str());
                if (program.tasks[task].kind == TaskKind::Compute && program.afterData[task] != none)
                    QVERIFY(timeline.start[task] >= timeline.end[program.afterData[task]]);
            }
        }
    }

    void ranksTrainOnAGpuEach_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<bool>("graphs");
        QTest::newRow("1f1b") << QByteArray("1f1b") << 2 << false;
        QTest::newRow("split backward, rings") << QByteArray("zb-v") << 3 << false;
        QTest::newRow("two replicas, captured") << QByteArray("chimera") << 4 << true;
        QTest::newRow("weights handed on") << QByteArray("cdp-v2") << 3 << false;
    }
    void ranksTrainOnAGpuEach()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, devices);
        QFETCH(bool, graphs);
        const Design design = test::tinyGpt(family.toStdString(), devices, family == "cdp-v2" ? devices : 8);
        RunOptions options;
        options.steps = 3;
        const RunResult threads = run(design, options);
        const QTemporaryDir folder;
        options.trace = folder.filePath("ranks.db").toStdString();
        options.runtime.captureBlocks = graphs;
        pretended::visibleGpus = devices;
        pretended::given().clear();
        auto meshes = createLocalMeshes(devices);
        std::vector<RunResult> results(static_cast<std::size_t>(devices));
        const auto failures = onAll(devices, [&](int r) {
            RunOptions own = options;
            own.createBackend = gpuRank(meshes, r);
            results[r] = run(design, own);
        });
        QCOMPARE(failures, std::vector<std::string>(static_cast<std::size_t>(devices)));
        QCOMPARE(results[0].backend, std::string("mpi"));
        QCOMPARE(results[0].losses, threads.losses);
        QCOMPARE(threads.gradients->skipped, results[0].gradients->skipped);
        QVERIFY(!threads.gradients->skipped.empty() || results[0].gradients->bitEqual);
        QCOMPARE(results[0].peakBytes, results[0].predictedPeakBytes);
        for (std::size_t d = 0; d < std::size_t(devices); ++d) {
            QCOMPARE(results[0].memory.at(d).maths, Bytes{PIPEWRIGHT_MATHS_WORKSPACE});
            QCOMPARE(results[0].heldBytes.at(d), results[0].memory[d].total());
        }
        QCOMPARE(results[0].droppedRecords, 0);
        QVERIFY(!pretended::given().empty());
        QVERIFY(oneOrderFitsAllGpus());
        QCOMPARE(pretended::disagreements.load(), 0);
        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        const Program program = predict(reader.design()).program;
        for (int step = 0; step < options.steps; ++step) {
            const Timeline timeline = reader.timeline(program, step);
            for (TaskId task = 0; task < program.tasks.size(); ++task) {
                QVERIFY2(timeline.start[task] != notRun, program.label(task).c_str());
                QVERIFY(timeline.start[task] <= timeline.end[task]);
            }
        }
        // What the GPU of every rank did is in the one trace, with the block that it was for.
        QVERIFY(reader.holdsGpuWork());
        std::set<TaskId> worked;
        for (int step = 0; step < options.steps; ++step)
            for (const GpuWork::Slice& slice : reader.gpuWork(program, step).slices)
                worked.insert(slice.task);
        for (TaskId task = 0; task < program.tasks.size(); ++task)
            QVERIFY2(program.tasks[task].kind != TaskKind::Compute || worked.contains(task),
                     program.label(task).c_str());
    }

    void aMachineWithFewerGpusThanRanksIsRefused()
    {
        pretended::visibleGpus = 2;
        auto meshes = createLocalMeshes(3);
        const auto failures = onAll(3, [&](int r) { gpuRank(meshes, r)(3); });
        for (const std::string& failure : failures)
            QVERIFY2(failure.find("3 processes on this machine and 2 GPUs that they can see") != std::string::npos,
                     failure.c_str());
    }

    /// As Slurm does it: whatever GPU a process has, it is the first that it sees.
    void eachRankMayBeShownItsOwnGpuOnly()
    {
        pretended::visibleGpus = 1;
        auto meshes = createLocalMeshes(3);
        std::vector<std::string> names(3);
        const auto failures = onAll(3, [&](int r) {
            pretended::firstVisible = 2 * r;
            names[r] = gpuRank(meshes, r)(3)->device(r).name();
        });
        QCOMPARE(failures, std::vector<std::string>(3));
        QCOMPARE(names, (std::vector<std::string>{"rank 0, GPU 0", "rank 1, GPU 0", "rank 2, GPU 0"}));
    }

    void ranksRunWhereTheClusterSays()
    {
        pretended::visibleGpus = 4;
        const auto namesOn = [](std::vector<GpuShare> shares, std::vector<std::string>& names) {
            auto meshes = createLocalMeshes(2);
            CudaSetup setup;
            setup.devices = std::move(shares);
            return onAll(2, [&](int r) {
                const auto backend = gpuRank(meshes, r, "libnccl.so.2", setup)(2);
                for (int d = 0; d < 2 && r == 0; ++d)
                    names.push_back(backend->device(d).name());
            });
        };
        std::vector<std::string> names;
        QCOMPARE(namesOn({{3, 0}, {1, 8}}, names), std::vector<std::string>(2));
        QCOMPARE(names, (std::vector<std::string>{"rank 0, GPU 3", "rank 1, GPU 1"}));
        for (const std::string& failure : namesOn({{2, 0}, {2, 8}}, names))
            QVERIFY2(failure.find("devices 0 and 1 would share one GPU (0000:02:00.0)") != std::string::npos,
                     failure.c_str());
        QVERIFY2(
            namesOn({{0, 0}, {4, 0}}, names)[1].find("cluster.gpus[1]: error: device 1 is to run on GPU 4, and its "
                                                     "process sees 4")
                != std::string::npos,
            "a GPU that is not there");
        QVERIFY2(
            namesOn({{0, 0}, {1, 17}}, names)[1].find("cluster.gpus[1]: error: device 1 wants 17 multiprocessors of "
                                                      "GPU 1, which has 16 (give it at most 16, or 0")
                != std::string::npos,
            "more than the GPU has");
        for (const std::string& failure : namesOn({{0, 0}}, names))
            QVERIFY2(failure.find("cluster.gpus: error: says where 1 devices run, and there are 2")
                         != std::string::npos,
                     failure.c_str());
    }

    void withoutNcclGpusOfSeveralProcessesAreRefused()
    {
        pretended::visibleGpus = 2;
        auto meshes = createLocalMeshes(2);
        const auto failures = onAll(2, [&](int r) { gpuRank(meshes, r, "")(2); });
        for (const std::string& failure : failures)
            QVERIFY2(failure.find("NCCL was not found") != std::string::npos, failure.c_str());
    }

    /// Who is left alone while ranks are connected is told why, instead of waiting in NCCL.
    void aRankThatCannotConnectTellsTheOthers()
    {
        pretended::visibleGpus = 2;
        auto meshes = createLocalMeshes(2);
        const auto failures = onAll(2, [&](int r) {
            const auto backend = gpuRank(meshes, r)(2);
            if (r == 1)
                backend->peers()->fail("it has no memory left");
            else
                backend->createLink(0, 1, {.postings = 1});
        });
        QVERIFY2(failures[0].find("device 1 ended the run: it has no memory left") != std::string::npos,
                 failures[0].c_str());
    }

    /// Both have met, so NCCL is what has to be given up.
    void aRankThatNeverJoinsNcclIsNamed()
    {
        pretended::visibleGpus = 2;
        pretended::absentGpu = 1;
        auto meshes = createLocalMeshes(2);
        CudaSetup setup;
        setup.deadline = 50'000'000;
        const auto failures =
            onAll(2, [&](int r) { gpuRank(meshes, r, "libnccl.so.2", setup)(2)->createLink(0, 1, {.postings = 1}); });
        pretended::absentGpu = -1;
        QVERIFY2(
            failures[0].find("device 0: error: its GPU 0 cannot be connected with that of device 1 by NCCL: device "
                             "1 has not come to NCCL within 50 ms")
                != std::string::npos,
            failures[0].c_str());
    }

    void faultsEndTheRunOnAllRanks_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<QString>("culprit");
        QTest::addColumn<bool>("gpus");
        for (const bool gpus : {false, true}) {
            const char* where = gpus ? "on GPUs" : "on the host";
            QTest::addRow("dies %s", where)
                << static_cast<int>(Fault::Kind::Dies) << "device 1 stopped at instruction 4" << gpus;
            QTest::addRow("throws %s", where)
                << static_cast<int>(Fault::Kind::Throws) << "device 1 failed at instruction 4" << gpus;
            QTest::addRow("a link stalls %s", where)
                << static_cast<int>(Fault::Kind::LinkStalls) << "no device has made progress" << gpus;
        }
    }
    /// Whatever happens to one rank, all end, and the speaker names it and keeps the trace so far.
    void faultsEndTheRunOnAllRanks()
    {
        QFETCH(int, kind);
        QFETCH(QString, culprit);
        QFETCH(bool, gpus);
        pretended::visibleGpus = 3;
        const QTemporaryDir folder;
        const Design design = test::tinyGpt("1f1b", 3, 8);
        RunOptions options;
        options.steps = 6;
        options.runtime.deadline = 500'000'000;
        options.runtime.faults = {{static_cast<Fault::Kind>(kind), 1, 3, 4, 0}};
        options.trace = folder.filePath("broken.db").toStdString();
        auto meshes = createLocalMeshes(3);
        const auto failures = onAll(3, [&](int r) {
            RunOptions own = options;
            own.createBackend = [&, r](int) { return createRankBackend(std::move(meshes[r]), deadline); };
            if (gpus)
                own.createBackend = gpuRank(meshes, r);
            run(design, own);
        });
        for (const std::string& failure : failures) {
            QVERIFY2(failure.find("step 3: error:") != std::string::npos, failure.c_str());
            QVERIFY2(failure.find("device 1") != std::string::npos, failure.c_str());
        }
        QVERIFY2(failures[0].find(culprit.toStdString()) != std::string::npos, failures[0].c_str());
        const TraceReader reader(options.trace);
        QVERIFY(!reader.complete());
        QCOMPARE(reader.steps().size(), std::size_t{3});
    }

    void missingRanksAreNamedWhereTheyMeet()
    {
        try {
            connectSocketMesh(0, 3, "localhost", 0, "0123456789abcdef", 200'000'000);
            QFAIL("met nobody");
        } catch (const Error& error) {
            QVERIFY2(std::string_view(error.what()).find("missing are ranks 1 2") != std::string_view::npos,
                     error.what());
        }
    }
};

PIPEWRIGHT_TEST(TestRanks, QCoreApplication)
#include "tst_ranks.moc"
