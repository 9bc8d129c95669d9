// SPDX-License-Identifier: GPL-3.0-or-later
// Records of a run of several processes on their way into the one trace.
#include "executor/mpi/rankhub.h"
#include "executor/mpi/rankrecords.h"
#include "makers/localmeshes.h"
#include "testmain.h"

#include <QTest>

#include <array>
#include <thread>

using namespace pipewright;

class TestRankRecords : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatTheGpuOfARankDidReachesTheTraceOnItsClock()
    {
        struct Kept final : RecordSink {
            void append(const std::vector<TaskRecord>&) override {}
            void append(const std::vector<MemoryRecord>&) override {}
            void append(const StepRecord&) override {}
            void append(const std::vector<GpuRecord>& records) override
            {
                gpu.insert(gpu.end(), records.begin(), records.end());
            }
            void commit() override {}
            std::vector<GpuRecord> gpu;
        } kept;
        auto meshes = test::createLocalMeshes(2);
        std::array<std::unique_ptr<RankHub>, 2> all;
        const auto onBoth = [](auto action) { // each on a thread of its own
            std::jthread other([&] { action(1); });
            action(0);
        };
        constexpr Nanoseconds deadline = 20'000'000'000;
        onBoth([&](std::size_t r) { all[r] = std::make_unique<RankHub>(std::move(meshes[r]), deadline); });
        GatheringSink gathering(*all[0], kept);
        std::vector<GpuRecord> sent(3);
        sent[0] = {4, 17, GpuRecord::Kind::Kernel, "gemm", 1, 13, 100, 250};
        sent[1] = {4, none, GpuRecord::Kind::Copy, "copy", 1, 14, 300, 350, 4096, 10, 0, 77, 5};
        sent[2] = {4, 18, GpuRecord::Kind::Call, "gemm"};
        sent[2].thread = 4711;
        onBoth([&](std::size_t r) {
            if (r == 1)
                PostingSink(*all[1]).append(sent);
            all[r]->barrier();
        });
        gathering.append(std::vector<GpuRecord>{sent[0]}); // process 0's own
        gathering.commit();
        QCOMPARE(kept.gpu.size(), std::size_t{4});
        QCOMPARE(kept.gpu[0].rank, 0);
        const Nanoseconds offset = all[0]->clockOffset(1);
        for (std::size_t i = 0; i < sent.size(); ++i) {
            const GpuRecord &from = sent[i], &to = kept.gpu[i + 1];
            QCOMPARE(to.rank, 1);
            QCOMPARE(to.name, from.name);
            QCOMPARE(int(to.kind), int(from.kind));
            QCOMPARE(to.start, from.start + offset);
            QCOMPARE(to.end, from.end + offset);
            QVERIFY(to.step == from.step && to.task == from.task && to.bytes == from.bytes);
            QVERIFY(to.device == from.device && to.stream == from.stream && to.toDevice == from.toDevice);
            QVERIFY(to.copyKind == from.copyKind && to.correlation == from.correlation);
            QVERIFY(to.graphNode == from.graphNode && to.thread == from.thread);
        }
    }

    void aStepIsFinishedWhenAllRecordsOfItHaveCome()
    {
        struct Kept final : RecordSink {
            void append(const std::vector<TaskRecord>& records) override { tasks += records.size(); }
            void append(const std::vector<MemoryRecord>&) override {}
            void append(const StepRecord& record) override { tasksBefore.emplace_back(record.step, tasks); }
            void commit() override {}
            std::size_t tasks = 0;
            std::vector<std::pair<int, std::size_t>> tasksBefore; // by step
        } kept;
        auto meshes = test::createLocalMeshes(2);
        std::array<std::unique_ptr<RankHub>, 2> all;
        const auto onBoth = [](auto action) {
            std::jthread other([&] { action(1); });
            action(0);
        };
        onBoth([&](std::size_t r) { all[r] = std::make_unique<RankHub>(std::move(meshes[r]), 20'000'000'000); });
        GatheringSink gathering(*all[0], kept);
        PostingSink posting(*all[1]);
        const auto meet = [&](const auto& other) {
            onBoth([&](std::size_t r) {
                if (r == 1)
                    other();
                all[r]->barrier();
            });
        };
        gathering.append(std::vector<TaskRecord>(3));
        gathering.append(StepRecord{0, 0, 10, 0});
        meet([&] { posting.append(std::vector<TaskRecord>(1)); }); // one of two
        gathering.commit();
        QVERIFY(kept.tasksBefore.empty());
        meet([&] {
            posting.append(std::vector<TaskRecord>(1));
            posting.append(StepRecord{0, 0, 10, 0});
            posting.append(StepRecord{1, 10, 20, 0}); // ahead of process 0
        });
        gathering.commit();
        QCOMPARE(kept.tasksBefore, (std::vector<std::pair<int, std::size_t>>{{0, 5}}));
        gathering.append(StepRecord{1, 10, 20, 0});
        gathering.commit();
        QCOMPARE(kept.tasksBefore.size(), std::size_t{2});
    }

    void whatARankSendsIsNotTakenOnTrust()
    {
        const UnfilledVector<std::byte> bytes(96, std::byte{1}); // as a record of a GPU's work whose name never came
        constexpr std::uint32_t bufferBytes = 2, gpu = 5;
        QVERIFY(unpack({{1, bufferBytes, 1 << 30, bytes}}, [](BufferId) { return Region{}; }).empty());
        auto meshes = test::createLocalMeshes(2);
        std::array<std::unique_ptr<RankHub>, 2> all;
        {
            std::jthread other([&] { all[1] = std::make_unique<RankHub>(std::move(meshes[1]), 20'000'000'000); });
            all[0] = std::make_unique<RankHub>(std::move(meshes[0]), 20'000'000'000);
        }
        struct Nowhere final : RecordSink {
            void append(const std::vector<TaskRecord>&) override {}
            void append(const std::vector<MemoryRecord>&) override {}
            void append(const StepRecord&) override {}
            void commit() override {}
        } nowhere;
        GatheringSink gathering(*all[0], nowhere);
        {
            std::jthread other([&] {
                all[1]->post(gpu, 0, bytes);
                all[1]->barrier();
            });
            all[0]->barrier();
        }
        QVERIFY_THROWS_EXCEPTION(Error, gathering.commit());
    }
};

PIPEWRIGHT_TEST(TestRankRecords, QCoreApplication)
#include "tst_rankrecords.moc"
