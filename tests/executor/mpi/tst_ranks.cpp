// SPDX-License-Identifier: GPL-3.0-or-later
// Several ranks in one process, with sockets between them: barriers, failures, lost ranks, whole runs on the host.
#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/schedule/replicas.h"
#include "executor/mpi/launch.h"
#include "executor/mpi/onall.h"
#include "executor/mpi/rankbackend.h"
#include "executor/mpi/rankhub.h"
#include "executor/mpi/socketmesh.h"
#include "executor/run/run.h"
#include "makers/localmeshes.h"
#include "makers/models.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>

using namespace pipewright;

using test::onAll;

namespace {

std::vector<std::unique_ptr<RankHub>> hubs(int ranks, Nanoseconds limit = test::rankDeadline)
{
    auto meshes = test::createLocalMeshes(ranks);
    std::vector<std::unique_ptr<RankHub>> all(meshes.size());
    onAll(ranks, [&](int r) { all[r] = std::make_unique<RankHub>(std::move(meshes[r]), limit); });
    return all;
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
        UnfilledVector<std::byte> large(3'000'000, std::byte{7});
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
        auto meshes = test::createLocalMeshes(2);
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
        QTest::addColumn<int>("level"); ///< of what they share out
        QTest::addRow("1f1b that offloads") << QByteArray("1f1b") << 4 << false << 1 << 0;
        for (const int devices : {2, 4})
            for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "chimera", "gpipe"})
                QTest::addRow("%s, %d ranks", family, devices) << QByteArray(family) << devices << false << 1 << 0;
        for (const char* family : {"1f1b", "v-half"})
            QTest::addRow("two copies of %s", family) << QByteArray(family) << 4 << false << 2 << 0;
        for (const bool narrow : {false, true})
            for (const int level : {1, 3})
                QTest::addRow("three copies of gpipe%s, ZeRO %d", narrow ? ", bf16" : "", level)
                    << QByteArray("gpipe") << 6 << narrow << 3 << level;
        QTest::addRow("two copies of v-half, ZeRO 2") << QByteArray("v-half") << 4 << false << 2 << 2;
        for (const char* family : {"1f1b", "pipeoptim", "cdp-v2"})
            QTest::addRow("%s, bf16", family) << QByteArray(family) << 2 << true << 1 << 0;
    }
    void ranksTrainToTheBitsOfThreads()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, devices);
        QFETCH(bool, narrow);
        QFETCH(int, replicas);
        QFETCH(int, level);
        Design design = test::tinyGpt(family.toStdString(), devices / replicas, 8);
        design.schedule = withReplicas(design.schedule, replicas);
        design.schedule.zero = {.level = level, .reshard = {true, {}}};
        if (narrow) {
            ModelShape shape = design.workload->shape;
            shape.dataType = DataType::Bf16;
            shape.widened = true;
            design.workload = makeWorkload(shape, design.workload->optimizer, "test");
        }
        const bool offloads = QString(QTest::currentDataTag()).contains("offloads");
        if (offloads) {
            design.costs.hostLink = LinkCosts{1000, 1e12};
            design = withOffload(design, std::vector<bool>(static_cast<std::size_t>(design.schedule.stages()), true));
        }
        RunOptions options;
        options.steps = 4;
        options.runtime.checkMemory = true;
        const RunResult threads = run(design, options);
        const QTemporaryDir folder;
        options.trace = folder.filePath("ranks.db").toStdString();
        auto meshes = test::createLocalMeshes(devices);
        std::vector<RunResult> results(static_cast<std::size_t>(devices));
        const auto failures = onAll(devices, [&](int r) {
            RunOptions own = options;
            own.runtime.eagerSlots = r % 2; // sending is each rank's own affair
            own.createBackend = [&, r](int) { return createRankBackend(std::move(meshes[r]), test::rankDeadline); };
            results[r] = run(design, own);
        });
        QCOMPARE(failures, std::vector<std::string>(static_cast<std::size_t>(devices)));
        const RunResult& ranks = results[0];
        QVERIFY(ranks.isRankZero && !results[1].isRankZero);
        QCOMPARE(ranks.backend, std::string("mpi"));
        QCOMPARE(ranks.losses, threads.losses); // to the bit: every step depends on all before
        QVERIFY(ranks.gradients && ranks.gradients->bitEqual && threads.gradients->bitEqual);
        QCOMPARE(ranks.peakBytes, threads.peakBytes);
        QCOMPARE(ranks.hostBytes, threads.hostBytes);
        QCOMPARE(ranks.hostBytes, ranks.predictedHostBytes);
        QCOMPARE(std::any_of(ranks.hostBytes.begin(), ranks.hostBytes.end(), [](Bytes bytes) { return bytes > 0; }),
                 offloads);
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

    void faultsEndTheRunOnAllRanks_data() { test::faultsOfARank(); }
    void faultsEndTheRunOnAllRanks()
    {
        test::faultsEndTheRun(test::tinyGpt("1f1b", 3, 8), 500'000'000, [](test::Meshes& meshes, int r) {
            return [&meshes, r](int) { return createRankBackend(std::move(meshes[r]), test::rankDeadline); };
        });
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
