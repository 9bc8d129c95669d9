// SPDX-License-Identifier: GPL-3.0-or-later
// Several ranks in one process, each with the real plugin and a GPU of its own, which stands in.
#include "core/design/redesign.h"
#include "core/predict/predict.h"
#include "core/schedule/replicas.h"
#include "executor/cuda/standingpus.h"
#include "executor/mpi/onall.h"
#include "executor/mpi/rankbackend.h"
#include "executor/mpi/rankhub.h"
#include "executor/run/grouprun.h"
#include "makers/groups.h"
#include "makers/localmeshes.h"
#include "makers/models.h"
#include "sanitized.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace pipewright;
using test::Meshes;
using test::onAll;

namespace {

constexpr Nanoseconds deadline = test::rankDeadline;

/// What a rank sees of the machine, and what its GPU was given by NCCL.
struct Seen {
    static inline std::atomic<int> gpus{4};
    static inline thread_local int first = 0; ///< of the machine's, of the thread that is a rank
    static inline std::mutex mutex;           ///< guards what follows
    static inline std::map<void*, std::pair<std::int32_t, std::string>> members; ///< their GPU and group
    static inline std::map<std::string, std::set<std::int32_t>> groups;          ///< their GPUs
    static inline std::map<std::int32_t, std::deque<std::string>> given;         ///< per GPU the groups, in order

    static void note(void* member)
    {
        const std::lock_guard lock(mutex);
        const auto& [device, group] = members.at(member);
        given[device].push_back(group);
    }
};

/// For as long as it lives each rank sees so many.
struct Sees {
    explicit Sees(int gpus) { Seen::gpus = gpus; }
    ~Sees() { Seen::gpus = 4; }
};

/// The real plugin, looked at.
const PipewrightCudaTable& seenTable()
{
    static const PipewrightCudaTable table = [] {
        PipewrightCudaTable made = test::standInTable();
        made.deviceCount = [](std::int32_t* count) { return *count = Seen::gpus, 0; };
        made.deviceInfo = [](std::int32_t device, PipewrightCudaDevice* info) {
            return test::standInTable().deviceInfo(Seen::first + device, info);
        };
        made.ncclJoin = [](std::int32_t device, const std::uint8_t* name, std::int32_t rank, std::int32_t ranks,
                           std::int32_t multiprocessors, void** member) {
            const int code = test::standInTable().ncclJoin(device, name, rank, ranks, multiprocessors, member);
            const std::lock_guard lock(Seen::mutex);
            Seen::members[*member] = {device, std::string(name, name + PIPEWRIGHT_NCCL_NAME)};
            Seen::groups[Seen::members[*member].second].insert(device);
            return code;
        };
        made.ncclAllReduce = [](void* member, const float* from, float* to, std::int64_t count, void* on) {
            Seen::note(member);
            return test::standInTable().ncclAllReduce(member, from, to, count, on);
        };
        made.ncclAllGather = [](void* member, const float* from, float* to, std::int64_t count, void* on) {
            Seen::note(member);
            return test::standInTable().ncclAllGather(member, from, to, count, on);
        };
        made.ncclReduceScatter = [](void* member, const float* from, float* to, std::int64_t count, void* on) {
            Seen::note(member);
            return test::standInTable().ncclReduceScatter(member, from, to, count, on);
        };
        made.ncclBroadcast = [](void* member, float* data, std::int64_t count, std::int32_t root, void* on) {
            Seen::note(member);
            return test::standInTable().ncclBroadcast(member, data, count, root, on);
        };
        made.ncclReduce = [](void* member, const float* from, float* to, std::int64_t count, std::int32_t root,
                             void* on) {
            Seen::note(member);
            return test::standInTable().ncclReduce(member, from, to, count, root, on);
        };
        made.ncclSendTo = [](void* member, std::int32_t rank, const void* data, std::int64_t bytes, void* on) {
            Seen::note(member);
            return test::standInTable().ncclSendTo(member, rank, data, bytes, on);
        };
        made.ncclReceiveFrom = [](void* member, std::int32_t rank, void* data, std::int64_t bytes, void* on) {
            Seen::note(member);
            return test::standInTable().ncclReceiveFrom(member, rank, data, bytes, on);
        };
        return made;
    }();
    return table;
}

/// Rank r's backend, with a GPU of its own.
std::function<std::unique_ptr<Backend>(int)>
gpuRank(Meshes& meshes, int r, std::string nccl = test::standInLibrary("NCCL"), CudaSetup setup = {})
{
    return [&meshes, r, nccl, setup](int) mutable {
        setup.nccl = nccl;
        setup.cublasLt = test::standInLibrary("cuBLASLt");
        return createRankBackend(std::move(meshes[r]), deadline, seenTable(), setup);
    };
}

/// Whether all that the GPUs were given comes to an end when each of them does one thing at a time, and a thing is done
/// when all of its GPUs have come to it.
bool oneOrderFitsAllGpus()
{
    auto left = Seen::given;
    for (bool moved = true; moved;) {
        moved = false;
        for (const auto& [group, gpus] : Seen::groups)
            while (std::all_of(gpus.begin(), gpus.end(), [&, &name = group](std::int32_t gpu) {
                return !left[gpu].empty() && left[gpu].front() == name;
            })) {
                for (const std::int32_t gpu : gpus)
                    left[gpu].pop_front();
                moved = true;
            }
    }
    return std::all_of(left.begin(), left.end(), [](const auto& each) { return each.second.empty(); });
}

/// The first task of which a step's record is missing or upside down; empty: none.
std::string notRecorded(const TraceReader& reader, int steps)
{
    const Program program = predict(reader.design()).program;
    for (int step = 0; step < steps; ++step) {
        const Timeline timeline = reader.timeline(program, step);
        for (TaskId task = 0; task < program.tasks.size(); ++task)
            if (timeline.start[task] == notRun || timeline.start[task] > timeline.end[task])
                return program.label(task);
    }
    return {};
}

/// What each process returned, and what failed, of all in one line.
std::pair<std::vector<RunResult>, std::string> runOnRanks(const Design& design, const RunOptions& options, int devices)
{
    auto meshes = test::createLocalMeshes(devices);
    std::vector<RunResult> results(static_cast<std::size_t>(devices));
    const auto failures = onAll(devices, [&](int r) {
        RunOptions own = options;
        own.createBackend = gpuRank(meshes, r);
        results[static_cast<std::size_t>(r)] = run(design, own);
    });
    std::string why;
    for (std::size_t rank = 0; rank < failures.size(); ++rank)
        if (!failures[rank].empty())
            why += (why.empty() ? "" : "; ") + std::to_string(rank) + ": " + failures[rank];
    return {std::move(results), std::move(why)};
}

} // namespace

class TestGpuRanks : public QObject {
    Q_OBJECT

    static constexpr int microbatches = threadSanitized ? 2 : 4; ///< of groups

private slots:
    void initTestCase() { NEEDS_STAND_IN_GPUS; }

    void ranksTrainOnAGpuEach_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<bool>("graphs");
        QTest::newRow("1f1b") << QByteArray("1f1b") << 2 << false;
        QTest::newRow("split backward, rings") << QByteArray("zb-v") << 3 << false;
        QTest::newRow("two replicas, captured") << QByteArray("chimera") << 4 << true;
        QTest::newRow("three copies, shared optimizer state") << QByteArray("gpipe") << 3 << false;
        QTest::newRow("three copies, shared parameters, captured") << QByteArray("gpipe") << 3 << true;
        QTest::newRow("what is kept leaves") << QByteArray("zb-h1") << 2 << false;
        QTest::newRow("weights handed on") << QByteArray("cdp-v2") << 3 << false;
    }
    void ranksTrainOnAGpuEach()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, devices);
        QFETCH(bool, graphs);
        const int copies = family == "gpipe" ? devices : 1;
        Design design = test::smallGpt(family.toStdString(), devices / copies, devices);
        design.schedule = withReplicas(design.schedule, copies);
        design.schedule.zero.level = copies == 1 ? 0 : graphs ? 3 : 1;
        if (family == "zb-h1") {
            design.costs.hostLink = LinkCosts{1000, 1e12};
            design = withOffload(design, std::vector<bool>(static_cast<std::size_t>(devices), true));
        }
        RunOptions options;
        options.steps = 2;
        const RunResult threads = run(design, options);
        const QTemporaryDir folder;
        options.trace = folder.filePath("ranks.db").toStdString();
        options.runtime.captureBlocks = graphs;
        Seen::given.clear();
        const auto [results, why] = runOnRanks(design, options, devices);
        QVERIFY2(why.empty(), why.c_str());
        QCOMPARE(results[0].backend, std::string("mpi"));
        QVERIFY(test::nearlyEqual(results[0].losses, threads.losses));
        QCOMPARE(threads.gradients->skipped, results[0].gradients->skipped);
        QVERIFY(!threads.gradients->skipped.empty() || results[0].gradients->holds());
        QCOMPARE(results[0].peakBytes, results[0].predictedPeakBytes);
        QCOMPARE(results[0].hostBytes, results[0].predictedHostBytes);
        const auto isLarge = [](Bytes bytes) { return bytes > 0; };
        QCOMPARE(std::any_of(results[0].hostBytes.begin(), results[0].hostBytes.end(), isLarge), family == "zb-h1");
        for (std::size_t d = 0; d < std::size_t(devices); ++d) {
            QCOMPARE(results[0].memory.at(d).maths, Bytes{PIPEWRIGHT_MATHS_WORKSPACE});
            QCOMPARE(results[0].heldBytes.at(d), results[0].memory[d].total());
        }
        QCOMPARE(results[0].droppedRecords, 0);
        QVERIFY(!Seen::given.empty());
        QVERIFY(oneOrderFitsAllGpus());
        const QString faults = test::standInReport().faults();
        QVERIFY2(faults.isEmpty(), qPrintable(faults));
        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        QCOMPARE(notRecorded(reader, options.steps), std::string());
    }

    void membersTrainOnAGpuOfAProcessEach_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<QByteArray>("model");
        QTest::addColumn<int>("second"); ///< members of the second group
        QTest::addColumn<bool>("graphs");
        int number = 3; // under the thread sanitizer graphs are among what is left
        const auto row = [&number](const char* name, const char* family, const char* model, int second, bool graphs) {
            if (!leftOut(number++))
                QTest::newRow(name) << QByteArray(family) << QByteArray(model) << second << graphs;
        };
        row("1f1b", "1f1b", "gpt", 2, false);
        row("captured", "1f1b", "gpt", 2, true);
        row("three members and a single device", "zb-h1", "gpt", 0, false);
        row("experts, captured", "zb-h1", "experts", 1, true);
        row("a head that is the embedding", "chimera", "tied", 2, false);
        row("bf16", "1f1b", "bf16", 2, false);
        row("made again", "interleaved-1f1b", "recomputes", 2, false);
        row("two copies of a group, shared optimizer state", "gpipe", "copies", 2, false);
    }
    /// As threads do, to the bytes that were predicted; what the members have is recorded of each.
    void membersTrainOnAGpuOfAProcessEach()
    {
        QFETCH(QByteArray, family);
        QFETCH(QByteArray, model);
        QFETCH(int, second);
        QFETCH(bool, graphs);
        const int layers = test::fewestLayers(family.toStdString());
        ModelShape shape = model == "experts" ? test::groupExperts(layers) : test::groupShape(layers);
        shape.tiedHead = model == "tied";
        if (model == "bf16") {
            shape.dataType = DataType::Bf16;
            shape.widened = true;
        }
        const std::vector<double> first =
            second == 0 ? std::vector<double>{1e9, 1e9, 5e8} : std::vector<double>{1e9, 5e8};
        Design design =
            model == "copies"
                ? test::copiesOf(test::groupDesign(family.toStdString(), {first}, 2, shape), 2)
                : test::groupDesign(family.toStdString(), {first, std::vector<double>(std::max(1, second), 1e9)},
                                    microbatches, shape);
        design.schedule.zero.level = model == "copies" ? 1 : 0;
        if (model == "recomputes")
            design = withRecompute(
                design, std::vector<Recompute>(static_cast<std::size_t>(design.schedule.stages()), Recompute::Block));
        RunOptions options;
        options.steps = graphs ? 3 : 2;
        const RunResult threads = run(design, options);
        const QTemporaryDir folder;
        options.backend = "mpi";
        options.gpus = true;
        options.runtime.captureBlocks = graphs;
        options.trace = folder.filePath("ranks.db").toStdString();
        const int devices = devicesOfRun(design, meansOf(options));
        QCOMPARE(devices, threads.devices);
        Seen::given.clear();
        test::forgetStandIns();
        const auto [results, why] = runOnRanks(design, options, devices);
        QVERIFY2(why.empty(), why.c_str());
        const RunResult& result = results[0];
        QCOMPARE(result.maths, std::string("training"));
        QCOMPARE(result.groups, threads.groups);
        QVERIFY(test::nearlyEqual(result.losses, threads.losses));
        QVERIFY2(result.gradients && result.gradients->holds(), result.gradients->worst.c_str());
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        for (std::size_t d = 0; d < std::size_t(devices); ++d)
            QCOMPARE(result.heldBytes.at(d), result.memory.at(d).total());
        QCOMPARE(test::standInReport().counted("graph launches") > 0, graphs);
        QVERIFY(!Seen::given.empty());
        QVERIFY(graphs || oneOrderFitsAllGpus()); // captured calls are given once
        const QString faults = test::standInReport().faults();
        QVERIFY2(faults.isEmpty(), qPrintable(faults));
        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        QCOMPARE(notRecorded(reader, options.steps), std::string());
        const Program program = predict(reader.design()).program;
        const GpuWork work = reader.gpuWork(program, 1);
        std::set<int> members; // of the first group, each with parts and collectives of its blocks
        for (const GpuWork::Slice& slice : work.slices)
            if (program.tasks[slice.task].device == 0)
                members.insert(slice.gpu);
        QCOMPARE(members.size(), first.size());
    }

    void aMemberThatFailsEndsTheOthers_data()
    {
        QTest::addColumn<bool>("graphs");
        QTest::newRow("graphs") << true;
        if (!threadSanitized)
            QTest::newRow("streams") << false;
    }
    void aMemberThatFailsEndsTheOthers()
    {
        QFETCH(bool, graphs);
        const Design design = test::groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, microbatches, test::groupShape(2));
        const int lastStep = graphs ? 2 : 1; // captured in the second, launched in the third
        auto meshes = test::createLocalMeshes(4);
        const auto failures = onAll(4, [&](int r) {
            RunOptions own;
            own.steps = lastStep + 1;
            own.backend = "mpi";
            own.gpus = true;
            own.runtime.captureBlocks = graphs;
            own.runtime.faults = {{.kind = Fault::Kind::Throws, .device = 1, .step = lastStep, .instruction = 6}};
            own.createBackend = gpuRank(meshes, r);
            run(design, own);
        });
        for (const std::string& failure : failures)
            QVERIFY2(failure.find("an injected fault made its maths fail") != std::string::npos, failure.c_str());
    }

    void aMachineWithFewerGpusThanRanksIsRefused()
    {
        const Sees two(2);
        auto meshes = test::createLocalMeshes(3);
        const auto failures = onAll(3, [&](int r) { gpuRank(meshes, r)(3); });
        for (const std::string& failure : failures)
            QVERIFY2(failure.find("3 processes on this machine and 2 GPUs that they can see") != std::string::npos,
                     failure.c_str());
    }

    /// As Slurm does it: whatever GPU a process has, it is the first that it sees.
    void eachRankMayBeShownItsOwnGpuOnly()
    {
        const Sees one(1);
        auto meshes = test::createLocalMeshes(3);
        std::vector<std::string> names(3);
        const auto failures = onAll(3, [&](int r) {
            Seen::first = r;
            names[r] = gpuRank(meshes, r)(3)->device(r).name();
        });
        QCOMPARE(failures, std::vector<std::string>(3));
        QCOMPARE(names, (std::vector<std::string>{"rank 0, GPU 0", "rank 1, GPU 0", "rank 2, GPU 0"}));
    }

    void ranksRunWhereTheClusterSays()
    {
        const auto namesOn = [](std::vector<GpuShare> shares, std::vector<std::string>& names) {
            auto meshes = test::createLocalMeshes(2);
            CudaSetup setup;
            setup.devices = std::move(shares);
            return onAll(2, [&](int r) {
                const auto backend = gpuRank(meshes, r, test::standInLibrary("NCCL"), setup)(2);
                for (int d = 0; d < 2 && r == 0; ++d)
                    names.push_back(backend->device(d).name());
            });
        };
        std::vector<std::string> names;
        for (const std::string& failure : namesOn({{3, 0}, {1, 8}}, names))
            QVERIFY2(failure.empty(), failure.c_str());
        QCOMPARE(names, (std::vector<std::string>{"rank 0, GPU 3", "rank 1, GPU 1"}));
        for (const std::string& failure : namesOn({{2, 0}, {2, 8}}, names))
            QVERIFY2(failure.find("devices 0 and 1 would share one GPU (0000:03:00.0)") != std::string::npos,
                     failure.c_str());
        QVERIFY2(
            namesOn({{0, 0}, {4, 0}}, names)[1].find("cluster.gpus[1]: error: device 1 is to run on GPU 4, and its "
                                                     "process sees 4")
                != std::string::npos,
            "a GPU that is not there");
        QVERIFY2(
            namesOn({{0, 0}, {1, 133}}, names)[1].find("cluster.gpus[1]: error: device 1 wants 133 multiprocessors of "
                                                       "GPU 1, which has 132 (give it at most 132, or 0")
                != std::string::npos,
            "more than the GPU has");
        for (const std::string& failure : namesOn({{0, 0}}, names))
            QVERIFY2(failure.find("cluster.gpus: error: says where 1 devices run, and there are 2")
                         != std::string::npos,
                     failure.c_str());
    }

    void withoutNcclGpusOfSeveralProcessesAreRefused()
    {
        auto meshes = test::createLocalMeshes(2);
        const auto failures = onAll(2, [&](int r) { gpuRank(meshes, r, "")(2); });
        for (const std::string& failure : failures)
            QVERIFY2(failure.find("NCCL was not found") != std::string::npos, failure.c_str());
    }

    /// Who is left alone while ranks are connected is told why, instead of waiting in NCCL.
    void aRankThatCannotConnectTellsTheOthers()
    {
        auto meshes = test::createLocalMeshes(2);
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
        auto meshes = test::createLocalMeshes(2);
        CudaSetup setup;
        setup.nccl = test::standInLibrary("NCCL");
        setup.deadline = 50'000'000;
        const auto failures = onAll(2, [&](int r) {
            createRankBackend(std::move(meshes[r]), deadline, test::tableWithoutGpu1InNccl(), setup)
                ->createLink(0, 1, {.postings = 1});
        });
        QVERIFY2(
            failures[0].find("device 0: error: its GPU 0 cannot be connected with that of device 1 by NCCL: device "
                             "1 has not come to NCCL within 50 ms")
                != std::string::npos,
            failures[0].c_str());
    }

    void faultsEndTheRunOnAllRanks_data() { test::faultsOfARank(); }
    void faultsEndTheRunOnAllRanks()
    {
        test::faultsEndTheRun(test::smallGpt("1f1b", 3, 3), 4'000'000'000,
                              [](Meshes& meshes, int r) { return gpuRank(meshes, r); });
    }
};

PIPEWRIGHT_TEST(TestGpuRanks, QCoreApplication)
#include "tst_gpuranks.moc"
