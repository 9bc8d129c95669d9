// SPDX-License-Identifier: GPL-3.0-or-later
// Kernels by name and group, launches and queues, of small recordings counted by hand.
#include "testmain.h"
#include "testpaths.h"
#include "traces/analysis/devicetime.h"
#include "traces/analysis/kerneltable.h"
#include "traces/analysis/launchqueue.h"
#include "traces/store/kernelgroups.h"
#include "traces/store/storedactivities.h"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// Calls of 10 ns, kernels of 100, 200 and 300 ns behind one another.
StoredActivities threeLaunches()
{
    TraceData data;
    const std::uint32_t thread = addLane(data, TraceLane::Kind::Thread, 0, 100, 1, -1, "thread 1");
    const std::uint32_t stream = addLane(data, TraceLane::Kind::Stream, 0, 100, 7, 0, "stream 7");
    Nanoseconds start = 100;
    for (int i = 0; i < 3; ++i) {
        addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", 20 * i, 20 * i + 10, i + 1);
        const Nanoseconds length = 100 * (i + 1);
        addActivity(data, stream, ActivityKind::Kernel, i == 1 ? "ampere_sgemm" : "vectorized_elementwise", start,
                    start + length, i + 1);
        start += length;
    }
    return stored(std::move(data));
}

} // namespace

class TestKernelTable : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void kernelsAreCountedByNameAndGroup()
    {
        const StoredActivities trace = threeLaunches();
        const KernelTable table = kernelTable(trace, 0, endOf(trace));
        QVERIFY(!table.ofHost);
        QCOMPARE(table.total, Nanoseconds(600));
        QCOMPARE(table.names.size(), std::size_t(2));
        QCOMPARE(table.names[0].name, std::string("vectorized_elementwise"));
        QCOMPARE(table.names[0].count, std::int64_t(2));
        QCOMPARE(table.names[0].total, Nanoseconds(400));
        QCOMPARE(table.names[0].mean(), 200.0);
        QCOMPARE(table.names[0].longest, Nanoseconds(300));
        QCOMPARE(table.names[1].group, std::string("product"));
        QCOMPARE(table.groups[0].name, std::string("elementwise"));
        QCOMPARE(table.shareOf(table.groups[1]), 1.0 / 3);
        const KernelTable part = kernelTable(trace, 150, 250); // the end of the first, the beginning of the second
        QCOMPARE(part.total, Nanoseconds(100));
        QCOMPARE(part.names[0].count, std::int64_t(1));

        const std::vector<KernelChange> changes = changesOf(part.names, table.names);
        QCOMPARE(changes[0].name, std::string("vectorized_elementwise"));
        QCOMPARE(changes[0].change(), Nanoseconds(350));
    }

    void launchesWaitInAQueue()
    {
        const StoredActivities trace = threeLaunches();
        const std::vector<LaunchQueue> queues = launchQueues(trace, LaunchCalls(trace), 0, endOf(trace));
        QCOMPARE(queues.size(), std::size_t(1));
        QCOMPARE(queues[0].launches, std::int64_t(3));
        QCOMPARE(queues[0].longest, std::int64_t(3)); // before the first one begins
        // 100 - 10, 200 - 30, 400 - 50
        QCOMPARE(queues[0].medianDelay, Nanoseconds(170));
        QCOMPARE(queues[0].longestDelay, Nanoseconds(350));
        // 1 for 20, 2 for 20, 3 for 60, 2 for 100, 1 for 200 of 400
        QCOMPARE(queues[0].meanLength, (20.0 + 40 + 180 + 200 + 200) / 400);
        QCOMPARE(queues[0].full, Nanoseconds(0));
    }

    void aRecordingOfACpuHasOperatorsAndTheirTime()
    {
        TraceData data;
        const std::uint32_t thread = addLane(data, TraceLane::Kind::Thread, 0, 100, 1, -1, "thread 1");
        addActivity(data, thread, ActivityKind::Operator, "aten::linear", 0, 100);
        addActivity(data, thread, ActivityKind::Operator, "aten::addmm", 10, 90);
        addActivity(data, thread, ActivityKind::Operator, "c10d::allreduce_", 150, 200);
        const StoredActivities trace = stored(std::move(data));
        const KernelTable table = kernelTable(trace, 0, 200);
        QVERIFY(table.ofHost);
        QCOMPARE(table.total, Nanoseconds(150));
        QCOMPARE(table.names[0].name, std::string("aten::addmm"));
        QCOMPARE(table.names[0].total, Nanoseconds(80)); // and 20 are aten::linear's own
        const DeviceTimes times = deviceTimes(trace, LaunchCalls(trace), 0, 200);
        QCOMPARE(times.devices.size(), std::size_t(1));
        QCOMPARE(times.devices[0].of(DeviceTimeCause::Computing), Nanoseconds(100));
        QCOMPARE(times.devices[0].of(DeviceTimeCause::Communication), Nanoseconds(50));
        QCOMPARE(times.devices[0].of(DeviceTimeCause::HostGap), Nanoseconds(50));
    }

    void communicationIsKnownByManyNames_data()
    {
        QTest::addColumn<QString>("kernel");
        QTest::addColumn<bool>("communicates");
        for (const char* kernel :
             {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", "void dpsk::ep::internode::combine<false, 8>(int4*)",
              "void deep_ep::intranode::dispatch<8, 768>(int4*)", "nvshmemi_transfer_allreduce",
              "mscclpp::allreduceKernel", "void vllm::cross_device_reduce_2stage<float, 8>()",
              "one_shot_all_reduce_push_kernel", "ucc_tl_cuda_reduce", "rccl_main_kernel", "msccl_kernel_Sum_float"})
            QTest::newRow(kernel) << QString(kernel) << true;
        for (const char* kernel :
             {"ampere_sgemm_128x64_nn", "void at::native::reduce_kernel<512>()", "flash_fwd_kernel"})
            QTest::newRow(kernel) << QString(kernel) << false;
    }

    void communicationIsKnownByManyNames()
    {
        QFETCH(QString, kernel);
        QFETCH(bool, communicates);
        QCOMPARE(KernelGroups::standard().isCommunication(kernel.toStdString()), communicates);
    }

    void aPersonsRulesComeFirst()
    {
        const QTemporaryDir folder;
        const std::string own = folder.filePath(QStringLiteral("own.json")).toStdString();
        std::ofstream(own)
            << R"({"rules": [{"group": "communication", "contains": ["my_exchange"], "streams": ["stream 27"]},
                                            {"group": "mine", "contains": ["gemm"]}]})";
        const KernelGroups groups({own, PIPEWRIGHT_SOURCE_DIR "/resources/kernelgroups.json"});
        QVERIFY(groups.isCommunication("my_exchange_kernel"));
        QVERIFY(groups.isCommunicationStream("stream 27"));
        QVERIFY(!groups.isCommunicationStream("stream 7"));
        QCOMPARE(groups.nameOf(ActivityKind::Kernel, "ampere_sgemm"), std::string("mine"));
        QCOMPARE(groups.nameOf(ActivityKind::Kernel, "layer_norm"), std::string("norm"));
    }
};

PIPEWRIGHT_TEST(TestKernelTable, QCoreApplication)
#include "tst_kerneltable.moc"
