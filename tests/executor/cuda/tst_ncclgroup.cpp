// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/ncclgroup.h"
#include "testmain.h"

#include <QTest>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

using namespace pipewright;

namespace {

std::atomic<bool> inCall{false}, entered{false}, aborted{false}, freed{false}, freedInCall{false};
std::atomic<int> depth{0};

/// A call that only an abort brings back, some time after it.
void stay()
{
    inCall = true;
    entered = true;
    for (int i = 0; i < 10'000 && !aborted; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    inCall = false;
}

/// The part of a plugin that a group of one member uses.
PipewrightCudaTable plugin(int allReduceAnswer)
{
    static int answer = 0;
    answer = allReduceAnswer;
    inCall = entered = aborted = freed = freedInCall = false;
    depth = 0;
    PipewrightCudaTable table{};
    table.lastError = [] { return "refused"; };
    table.createStream = [](std::int32_t, void*, void** stream) { return *stream = &depth, 0; };
    table.destroyStream = [](void*) { return 0; };
    table.ncclName = [](std::uint8_t*) { return 0; };
    table.ncclJoin = [](std::int32_t, const std::uint8_t*, std::int32_t, std::int32_t, std::int32_t, void** member) {
        return *member = &depth, 0;
    };
    table.ncclJoined = [](void*, std::int32_t* joined) { return *joined = 1, 0; };
    table.ncclWarmUp = [](void* const*, std::int32_t, std::int64_t) { return 0; };
    table.ncclGroup = [](std::int32_t begin) {
        depth += begin ? 1 : -1;
        if (begin == 0 && aborted && !freed.exchange(true)) // what was aborted in the group is freed when it ends
            freedInCall = inCall.load();
        return 0;
    };
    table.ncclAllReduce = [](void*, const float*, float*, std::int64_t, void*) {
        if (answer == 0) // a refused call comes back at once
            stay();
        return answer;
    };
    table.ncclAbort = [](void*) { return aborted = true, 0; };
    table.ncclClose = [](void*) { return 0; };
    return table;
}

} // namespace

class TestNcclGroup : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void givingUpEndsTheCallThatIsStuckAndFreesNothingThatItUses_data()
    {
        QTest::addColumn<bool>("grouped");
        QTest::newRow("a call") << false;
        QTest::newRow("a group of calls") << true;
    }
    void givingUpEndsTheCallThatIsStuckAndFreesNothingThatItUses()
    {
        QFETCH(bool, grouped);
        const PipewrightCudaTable table = plugin(0);
        const CudaGpu gpu{&table};
        CudaStream stream(gpu);
        NcclOwner owner;
        const auto members = joinNccl(std::span(&gpu, 1), {&owner}, 1'000'000'000);
        std::vector<float> values(4);
        std::thread device([&] {
            if (grouped)
                members[0]->beginGroup();
            members[0]->allReduce(stream, values, values);
            if (grouped) {
                members[0]->allReduce(stream, values, values);
                members[0]->endGroup();
            }
        });
        while (!entered)
            std::this_thread::yield();
        QVERIFY(inCall);
        giveUpTogether(table, std::array<Abortable*, 1>{members[0].get()});
        device.join();
        QVERIFY(aborted && freed);
        QVERIFY(!freedInCall);
    }

    /// Or an abort would wait for a group that nobody ends.
    void aCallThatFailsEndsItsGroup()
    {
        const PipewrightCudaTable table = plugin(1);
        const CudaGpu gpu{&table};
        CudaStream stream(gpu);
        NcclOwner owner;
        const auto members = joinNccl(std::span(&gpu, 1), {&owner}, 1'000'000'000);
        std::vector<float> values(4);
        members[0]->beginGroup();
        members[0]->allReduce(stream, values, values);
        members[0]->allReduce(stream, values, values);
        QVERIFY_THROWS_EXCEPTION(std::exception, members[0]->endGroup());
        QCOMPARE(depth.load(), 0);
        members[0]->abort();
        QVERIFY(aborted);
    }
};

PIPEWRIGHT_TEST(TestNcclGroup, QCoreApplication)
#include "tst_ncclgroup.moc"
