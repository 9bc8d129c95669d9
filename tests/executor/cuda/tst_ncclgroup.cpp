// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/ncclgroup.h"
#include "testmain.h"

#include <QTest>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
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
    table.ncclWarmUp = [](void* const*, std::int32_t, std::int32_t, std::int64_t) { return 0; };
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

/// What a link asks of a plugin, in order: per stream the streams on whose events it waited so far.
struct Asked {
    std::mutex mutex;
    int handles = 0;
    std::map<void*, void*> recordedOn; ///< per event
    std::map<void*, std::set<void*>> waitedFor;
    std::set<void*> sendWaitedFor, receiveWaitedFor;
};
Asked* asked = nullptr;

void* newHandle()
{
    const std::lock_guard lock(asked->mutex);
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(++asked->handles));
}

/// The part of a plugin that a link between two GPUs uses.
PipewrightCudaTable listener(Asked& to)
{
    asked = &to;
    PipewrightCudaTable table{};
    table.lastError = [] { return "refused"; };
    table.createStream = [](std::int32_t, void*, void** stream) { return *stream = newHandle(), 0; };
    table.destroyStream = [](void*) { return 0; };
    table.createEvent = [](std::int32_t, void** event) { return *event = newHandle(), 0; };
    table.destroyEvent = [](void*) { return 0; };
    table.recordEvent = [](void* event, void* stream) {
        const std::lock_guard lock(asked->mutex);
        return asked->recordedOn[event] = stream, 0;
    };
    table.streamWaits = [](void* stream, void* event) {
        const std::lock_guard lock(asked->mutex);
        return asked->waitedFor[stream].insert(asked->recordedOn[event]), 0;
    };
    table.beginBlock = [](const char*, std::int64_t) { return 0; };
    table.endBlock = [] { return 0; };
    table.ncclConnect = [](std::int32_t, std::int32_t, std::int64_t, void**, void**) { return 0; };
    table.ncclGroup = [](std::int32_t) { return 0; };
    table.ncclSend = [](void*, const void*, std::int64_t, void* stream) {
        const std::lock_guard lock(asked->mutex);
        return asked->sendWaitedFor = asked->waitedFor[stream], 0;
    };
    table.ncclReceive = [](void*, void*, std::int64_t, void* stream) {
        const std::lock_guard lock(asked->mutex);
        return asked->receiveWaitedFor = asked->waitedFor[stream], 0;
    };
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

    /// NCCL's kernel keeps multiprocessors until that of the other side runs: it must not begin before both can.
    void bothSidesOfATransferWaitForBoth()
    {
        Asked all;
        const PipewrightCudaTable table = listener(all);
        const CudaGpu from{&table, 0}, to{&table, 1};
        CudaStream sends(from), receives(to);
        CudaEvent sent(from, sends), arrived(to, receives);
        NcclOwner fromOwner, toOwner;
        NcclLink link(from, to, fromOwner, toOwner, {.postings = 1}, 1'000'000'000);
        std::array<std::byte, 8> source{}, destination{};
        const Region source8{source.data(), 8}, destination8{destination.data(), 8};
        link.receive(receives, {1, {&destination8, 1}, &arrived});
        link.send(sends, {1, {&source8, 1}, &sent});
        link.reset(); // when both sides are issued
        const std::set<void*> both{sends.handle(), receives.handle()};
        QCOMPARE(all.sendWaitedFor, both);
        QCOMPARE(all.receiveWaitedFor, both);
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
