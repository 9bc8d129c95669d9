// SPDX-License-Identifier: GPL-3.0-or-later
// Where the devices of another tool's trace spent their time: small cases by hand, and many at random against a count
// of every nanosecond.
#include "testmain.h"
#include "traces/analysis/achievedrates.h"
#include "traces/analysis/counterpeaks.h"
#include "traces/analysis/devicetime.h"
#include "traces/import/traceimport.h"
#include "traces/store/storedactivities.h"

#include <QTemporaryDir>
#include <QTest>

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <random>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// A host that launches, and a device's streams for work and for communication.
struct Machine {
    TraceData data;
    std::uint32_t thread = 0, stream = 0, comm = 0, correlation = 0;

    std::uint32_t addDevice(int rank)
    {
        thread = addLane(data, TraceLane::Kind::Thread, rank, 100 + rank, 1, -1, "thread 1");
        stream = addLane(data, TraceLane::Kind::Stream, rank, 100 + rank, 7, rank, "stream 7");
        comm = addLane(data, TraceLane::Kind::Stream, rank, 100 + rank, 9, rank, "stream 9");
        return stream;
    }
    void launch(std::uint32_t lane, const std::string& name, Nanoseconds call, Nanoseconds start, Nanoseconds end,
                ActivityKind kind = ActivityKind::Kernel)
    {
        ++correlation;
        addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", call, call + 5, correlation);
        addActivity(data, lane, kind, name, start, end, correlation);
    }
};

/// Two ranks that compute and reduce together in every step; `late` is added to rank 1 as its host's delay, or to
/// its kernels.
StoredActivities pair(Nanoseconds hostLate, Nanoseconds kernelsLonger)
{
    Machine m;
    for (int rank = 0; rank < 2; ++rank) {
        m.addDevice(rank);
        for (int step = 0; step < 3; ++step) {
            const Nanoseconds origin = step * 10'000;
            addActivity(m.data, m.thread, ActivityKind::Range, "ProfilerStep#" + std::to_string(step + 4), origin,
                        origin + 10'000);
            const Nanoseconds call = origin + (rank == 1 ? hostLate : 0);
            const Nanoseconds done = call + 2'100 + (rank == 1 ? kernelsLonger : 0);
            m.launch(m.stream, "gemm", call, call + 100, done);
            // The collective ends for both when the later one has come.
            m.launch(m.comm, "ncclDevKernel_AllReduce", call + 20, done, origin + 2'500 + hostLate + kernelsLonger);
        }
    }
    return stored(std::move(m.data), 2);
}

/// A pipeline of four ranks in PyTorch's own format, a file per rank: each rank receives, computes 1 ms and sends on,
/// eight times, its host far ahead of it. Times in microseconds are added to every transfer from rank 1 to rank 2, to
/// every computation of rank 2, or before the host of rank 2 launches one.
StoredActivities forwardPipeline(const QTemporaryDir& folder, int link, int device, int host)
{
    constexpr int ranks = 4, microbatches = 8, late = 2, usual = 100;
    std::array<std::string, ranks> events;
    std::array<int, ranks> clock{}, received{}, computed{}, sent{};
    std::array<int, ranks> sendCall{}, sendStart{};
    int correlation = 0;
    const auto slice = [&](int rank, const char* category, const std::string& name, int thread, int from, int to,
                           const std::string& more) {
        events[rank] += fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{}.000,"dur":{}.000,)"
                                    R"("args":{{"correlation":{}{}}}}},)",
                                    category, name, thread == 1 ? 100 : 0, thread, from, to - from, correlation, more);
    };
    const auto launch = [&](int rank, const std::string& name, int stream, int call, int from, int to,
                            const std::string& more = {}) {
        ++correlation;
        slice(rank, "cuda_runtime", "cudaLaunchKernel", 1, call, call + 4, {});
        slice(rank, "kernel", name, stream, from, to, fmt::format(R"(,"device":0,"stream":{}{})", stream, more));
    };
    const auto moves = [](const char* what, const char* key, int peer) {
        return fmt::format(R"(,"Collective name":"{}","{}":{},"In msg nelems":1000000,"dtype":"BFloat16")", what, key,
                           peer);
    };
    for (int m = 0; m < microbatches; ++m)
        for (std::size_t r = 0; r < ranks; ++r) {
            const int rank = static_cast<int>(r);
            int ready = 0;
            if (r > 0) {
                const int call = clock[r] += 10, start = std::max(received[r], call + 5);
                ready = std::max(start, sendStart[r - 1]) + usual + (rank == late ? link : 0);
                launch(rank, "ncclDevKernel_SendRecv", 13, call, start, ready, moves("recv", "Src Rank", rank - 1));
                launch(rank - 1, "ncclDevKernel_SendRecv", 14, sendCall[r - 1], sendStart[r - 1], ready,
                       moves("send", "Dst Rank", rank));
                received[r] = sent[r - 1] = ready;
            }
            const int call = clock[r] += 10 + (rank == late ? host : 0);
            const int start = std::max({computed[r], ready, call + 5});
            computed[r] = start + 1000 + (rank == late ? device : 0);
            launch(rank, "gemm", 7, call, start, computed[r]);
            sendCall[r] = clock[r] += 10;
            sendStart[r] = std::max({sent[r], computed[r], sendCall[r] + 5});
        }
    std::vector<std::string> paths;
    for (std::size_t r = 0; r < ranks; ++r) {
        paths.push_back(folder.filePath(QStringLiteral("rank%1.json").arg(r)).toStdString());
        std::ofstream(paths.back()) << fmt::format(
            R"({{"schemaVersion":1,"distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}},)"
            R"("baseTimeNanoseconds":1700000000000000000,"traceEvents":[{}{{}}]}})",
            r, ranks, events[r]);
    }
    const std::string store = folder.filePath(QStringLiteral("trace.db")).toStdString();
    importTraces(paths, store, true);
    return readActivities(store);
}

} // namespace

class TestDeviceTime : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aPeakIsWhereItWasReported()
    {
        StoredActivities trace;
        trace.counters.push_back({0, 0, "allocated bytes", {50, 70, 90}, {900, 300, 400}});
        QCOMPARE(memoryPeaks(trace, 0, 100).front().highestAt, Nanoseconds{50});
        QCOMPARE(memoryPeaks(trace, 60, 100).front().highestAt, Nanoseconds{60}); // it stands from before
        QCOMPARE(memoryPeaks(trace, 75, 100).front().highestAt, Nanoseconds{90});
    }

    void everyGapHasACause()
    {
        Machine m;
        m.addDevice(0);
        m.launch(m.stream, "gemm", 0, 100, 200);                   // 0-100: launched at its very beginning, so it waits
        m.launch(m.stream, "gemm", 110, 220, 300);                 // 200-220: back to back
        m.launch(m.stream, "gemm", 350, 400, 500);                 // 300-400: the host was late
        m.launch(m.stream, "gemm", 360, 600, 700);                 // 500-600: launched, but waiting
        m.launch(m.comm, "ncclDevKernel_SendRecv", 370, 650, 800); // 700-800: communication alone
        m.launch(m.stream, "Memcpy HtoD", 380, 800, 850, ActivityKind::Memcpy); // copies alone
        addActivity(m.data, m.thread, ActivityKind::Range, "all", 0, 1000);     // 850-1000: nothing more comes
        const StoredActivities trace = stored(std::move(m.data));
        const DeviceTimes times = deviceTimes(trace, LaunchCalls(trace), 0, 1000);
        QCOMPARE(times.devices.size(), 1u);
        const DeviceTime& device = times.devices[0];
        QCOMPARE(device.of(DeviceTimeCause::Computing), 100 + 80 + 100 + 100);
        QCOMPARE(device.of(DeviceTimeCause::Communication), 100);
        QCOMPARE(device.of(DeviceTimeCause::Copies), 50);
        QCOMPARE(device.of(DeviceTimeCause::BackToBack), 20);
        QCOMPARE(device.of(DeviceTimeCause::HostGap), 100 + 150);
        QCOMPARE(device.of(DeviceTimeCause::Waiting), 100 + 100);
        QCOMPARE(device.communicating, 150);
        QCOMPARE(device.overlap(), 1.0 / 3);
        QCOMPARE(device.slices, 6);
        QCOMPARE(device.gaps.front().end - device.gaps.front().start, 150);
        QVERIFY(!device.gaps.front().ended);
        QCOMPARE(times.straggler, -1);
        // A stretch inside a gap still knows what ends it.
        const DeviceTimes inside = deviceTimes(trace, LaunchCalls(trace), 310, 390);
        QCOMPARE(inside.devices[0].of(DeviceTimeCause::HostGap), 80);
        // One that cuts a gap does not change its cause: each nanosecond of two halves is what it was in the whole.
        for (Nanoseconds cut = 0; cut <= 1000; cut += 10) {
            const DeviceTimes before = deviceTimes(trace, LaunchCalls(trace), 0, cut);
            const DeviceTimes behind = deviceTimes(trace, LaunchCalls(trace), cut, 1000);
            for (std::size_t cause = 0; cause < deviceTimeCauses; ++cause)
                QCOMPARE(before.devices[0].time[cause] + behind.devices[0].time[cause], device.time[cause]);
        }
        // A trace without a device says so.
        Machine none;
        none.thread = addLane(none.data, TraceLane::Kind::Thread, 0, 1, 1, -1, "thread");
        addActivity(none.data, none.thread, ActivityKind::Range, "step", 0, 10);
        const StoredActivities hostOnly = stored(std::move(none.data));
        QVERIFY(deviceTimes(hostOnly, LaunchCalls(hostOnly), 0, 10).devices.empty());
    }

    void idleTimeBeforeWorkOfUnknownLaunchIsNotKnown()
    {
        Machine m;
        m.addDevice(0);
        m.launch(m.stream, "gemm", 0, 0, 100);
        addActivity(m.data, m.stream, ActivityKind::Kernel, "gemm", 300, 400); // its call was not recorded
        addActivity(m.data, m.stream, ActivityKind::Kernel, "gemm", 420, 500);
        m.launch(m.stream, "gemm", 450, 800, 900);
        const StoredActivities trace = stored(std::move(m.data));
        const DeviceTime device = deviceTimes(trace, LaunchCalls(trace), 0, 900).devices[0];
        QCOMPARE(device.of(DeviceTimeCause::NotKnown), 200);
        QCOMPARE(device.of(DeviceTimeCause::BackToBack), 20);
        QCOMPARE(device.of(DeviceTimeCause::Waiting), 300);
        QCOMPARE(device.idle(), 520);
    }

    void rangesOfGlooAreCommunicationWithoutAGpu()
    {
        TraceData data;
        const auto thread = addLane(data, TraceLane::Kind::Thread, 0, 100, 1, -1, "thread 1");
        const auto gloo = addLane(data, TraceLane::Kind::Thread, 0, 100, 2, -1, "thread 2");
        addActivity(data, thread, ActivityKind::Operator, "aten::mm", 0, 400);
        addActivity(data, thread, ActivityKind::Range, "forward", 0, 1000);
        addActivity(data, gloo, ActivityKind::Range, "gloo:all_reduce", 300, 900);
        const StoredActivities trace = stored(std::move(data));
        const DeviceTime device = deviceTimes(trace, LaunchCalls(trace), 0, 1000).devices.at(0);
        QCOMPARE(device.of(DeviceTimeCause::Computing), 400);
        QCOMPARE(device.of(DeviceTimeCause::Communication), 500);
        QCOMPARE(device.communicating, 600);
    }

    void aTraceThatOnlyComputesIsSaidToDoSo()
    {
        Machine m;
        m.addDevice(0);
        m.launch(m.stream, "gemm", 0, 0, 100);
        const StoredActivities trace = stored(std::move(m.data));
        QCOMPARE(verdict(deviceTimes(trace, LaunchCalls(trace), 0, 100)),
                 std::string("all of the devices' time is computing"));
    }

    void theSameCorrelationOfAnotherProcessIsAnotherLaunch()
    {
        TraceData data;
        for (int rank = 0; rank < 2; ++rank) {
            const auto thread = addLane(data, TraceLane::Kind::Thread, rank, 5, 1, -1, "thread");
            const auto stream = addLane(data, TraceLane::Kind::Stream, rank, 5, 7, 0, "stream 7");
            addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", rank == 0 ? 0 : 500, 501, 1);
            addActivity(data, stream, ActivityKind::Kernel, "gemm", 600, 1000, 1);
        }
        const StoredActivities trace = stored(std::move(data), 2);
        const DeviceTimes times = deviceTimes(trace, LaunchCalls(trace), 0, 1000);
        QCOMPARE(times.devices.size(), 2u);
        QCOMPARE(times.devices[0].of(DeviceTimeCause::Waiting), 600);
        QCOMPARE(times.devices[1].of(DeviceTimeCause::HostGap), 600);
    }

    void streamsThatNameTheDeviceForAProcessAreLaunchedByTheirRanks()
    {
        // As PyTorch's profiler writes them: the process of a stream is the number of its device.
        TraceData data;
        const auto thread = addLane(data, TraceLane::Kind::Thread, 0, 100, 1, -1, "thread");
        const auto stream = addLane(data, TraceLane::Kind::Stream, 0, 3, 7, 3, "stream 7");
        addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", 500, 501, 1);
        addActivity(data, stream, ActivityKind::Kernel, "gemm", 600, 1000, 1);
        const StoredActivities trace = stored(std::move(data));
        QCOMPARE(deviceTimes(trace, LaunchCalls(trace), 0, 1000).devices[0].of(DeviceTimeCause::HostGap), 600);
    }

    void aDelayIsNamedFirst_data()
    {
        QTest::addColumn<qint64>("host");
        QTest::addColumn<qint64>("kernels");
        QTest::addColumn<int>("reason");
        QTest::addColumn<qint64>("excess");
        // All of a gap that a late launch made is the host's, the launch's own 100 ns among it.
        QTest::newRow("host") << qint64(1500) << qint64(0) << int(DeviceTimeCause::HostGap) << qint64(1600);
        QTest::newRow("device") << qint64(0) << qint64(1500) << int(DeviceTimeCause::Computing) << qint64(1500);
    }

    void aDelayIsNamedFirst()
    {
        QFETCH(qint64, host);
        QFETCH(qint64, kernels);
        QFETCH(int, reason);
        QFETCH(qint64, excess);
        const StoredActivities trace = pair(host, kernels);
        const std::vector<TraceStep> steps = stepsOf(trace);
        QCOMPARE(steps.size(), 3u);
        QCOMPARE(steps[1].name, std::string("ProfilerStep#5"));
        QCOMPARE(steps[1].start, Nanoseconds{10'000});
        // What both do after the reduction is the same; the step up to there tells them apart.
        const DeviceTimes times = deviceTimes(trace, LaunchCalls(trace), 0, 2'500 + host + kernels);
        QCOMPARE(times.straggler, 1);
        QCOMPARE(int(times.reason), reason);
        QCOMPARE(times.excess, Nanoseconds{excess});
        QVERIFY(verdict(times).starts_with("rank 1, GPU 1 holds up the others"));
        // Rank 0 waits inside the reduction, which is nothing of its own.
        QVERIFY(times.devices[0].of(DeviceTimeCause::Communication) >= 1500);
        const StoredActivities even = pair(0, 0);
        QCOMPARE(deviceTimes(even, LaunchCalls(even), 0, 2'500).straggler, -1);
    }

    void aDelayInARecordedPipelineIsNamedFirst_data()
    {
        QTest::addColumn<int>("link");
        QTest::addColumn<int>("device");
        QTest::addColumn<int>("host");
        QTest::addColumn<QString>("first");
        QTest::newRow("link") << 1500 << 0 << 0
                              << "the link from rank 1 to rank 2 holds up the others: 16.00 times the usual time";
        QTest::newRow("device") << 0 << 800 << 0 << "rank 2, GPU 0 holds up the others: its own time is ";
        QTest::newRow("host") << 0 << 0 << 2500 << "rank 2, GPU 0 holds up the others: its own time is ";
        QTest::newRow("none") << 0 << 0 << 0 << "";
    }

    void aDelayInARecordedPipelineIsNamedFirst()
    {
        QFETCH(int, link);
        QFETCH(int, device);
        QFETCH(int, host);
        QFETCH(QString, first);
        const QTemporaryDir folder;
        const StoredActivities trace = forwardPipeline(folder, link, device, host);
        QCOMPARE(trace.transfers.links.size(), 3u);
        QCOMPARE(trace.transfers.transfers.size(), 24u);
        const DeviceTimes times = deviceTimes(trace, LaunchCalls(trace), 0, endOf(trace));
        const std::string said = verdict(times);
        QVERIFY2(said.starts_with(first.toStdString()), said.c_str());
        QCOMPARE(times.slowLink >= 0, link > 0);
        for (const LinkTime& l : times.links) {
            QCOMPARE(l.transfers, 8);
            QCOMPARE(l.usual, Nanoseconds{8 * 100'000});
            QCOMPARE(l.bytes, Bytes{8 * 2'000'000});
            // A sender, a receiver or their hosts coming late is nothing of the link's.
            QCOMPARE(l.time,
                     Nanoseconds{8 * 100'000 + (link > 0 && l.name.ends_with("to rank 2") ? 8 * link * 1000 : 0)});
        }
        if (link > 0) { // rank 2 computes while the next microbatch is on its way
            QCOMPARE(times.links[times.slowLink].excess, Nanoseconds{(1500 + 7 * 600) * 1000});
        } else if (device + host > 0) {
            QCOMPARE(times.straggler, 2);
            QCOMPARE(times.reason, device > 0 ? DeviceTimeCause::Computing : DeviceTimeCause::HostGap);
        } else {
            QCOMPARE(times.straggler, -1);
        }
    }

    void transfersThatCannotBePairedAreLeftOut()
    {
        std::vector<NcclKernel> seen;
        const auto add = [&](int rank, const char* what, int peer, Nanoseconds start, Nanoseconds end) {
            seen.push_back({rank, 0, peer, start, end, 100, what, "g"});
        };
        add(0, "send", 1, 10, 50); // the recording of rank 1 began later: which of the two it received is not known
        add(0, "send", 1, 60, 90);
        add(1, "recv", 0, 70, 90);
        add(0, "allreduce", -1, 100, 190);
        add(1, "allreduce", -1, 150, 180);
        add(0, "broadcast", -1, 200, 300); // of one rank only
        const LinkTransfers paired = pairTransfers(seen);
        QCOMPARE(paired.transfers.size(), 1u);
        const LinkTransfer& reduced = paired.transfers[0];
        QCOMPARE(paired.links[reduced.link].what, std::string("allreduce over ranks 0, 1"));
        QCOMPARE(reduced.ready, 150); // when the last came; the first waited for it
        QCOMPARE(reduced.time(), 40);
        QCOMPARE(reduced.waited, 50);
        QCOMPARE(reduced.rank, 1);
    }

    void everyNanosecondIsCountedOnce()
    {
        std::mt19937 random(7);
        const auto below = [&](int limit) { return static_cast<Nanoseconds>(random() % static_cast<unsigned>(limit)); };
        for (int round = 0; round < 20; ++round) {
            Machine m;
            m.addDevice(0);
            std::vector<std::array<Nanoseconds, 4>> slices; // start, end, call, class
            for (const std::uint32_t lane : {m.stream, m.comm, m.stream}) {
                Nanoseconds clock = below(50);
                for (int i = 0; i < 12; ++i) {
                    const Nanoseconds start = clock + below(60), end = start + below(40), // some take no time
                        call = std::max<Nanoseconds>(0, start - below(90));
                    clock = end;
                    const bool copy = lane == m.stream && below(4) == 0;
                    const bool comm = lane == m.comm;
                    m.launch(lane,
                             copy   ? "Memcpy"
                             : comm ? "ncclKernel"
                                    : "gemm",
                             call, start, end, copy ? ActivityKind::Memcpy : ActivityKind::Kernel);
                    slices.push_back({start, end, call, copy ? 2 : comm ? 1 : 0});
                }
            }
            const StoredActivities trace = stored(std::move(m.data));
            const Nanoseconds from = below(300), to = from + 50 + below(700);
            const DeviceTimes times = deviceTimes(trace, LaunchCalls(trace), from, to);
            std::array<Nanoseconds, deviceTimeCauses> expected{};
            Nanoseconds sum = 0;
            for (Nanoseconds t = from; t < to; ++t) {
                Nanoseconds what = 3;
                for (const auto& s : slices)
                    if (s[0] <= t && t < s[1])
                        what = std::min(what, s[3]);
                if (what < 3)
                    ++expected[what];
            }
            const DeviceTime& device = times.devices[0];
            for (std::size_t cause = 0; cause < 3; ++cause)
                QCOMPARE(device.time[cause], expected[cause]);
            for (const Nanoseconds part : device.time)
                sum += part;
            QCOMPARE(sum, to - from);
        }
    }

    void copiesAndCollectivesHaveRates()
    {
        Machine m;
        m.addDevice(0);
        for (int i = 0; i < 2; ++i) {
            ActivityDetail detail;
            detail.bytes = 1000 * (i + 1);
            detail.copyKind = 1;
            m.data.details.push_back(detail);
            addActivity(m.data, m.stream, ActivityKind::Memcpy, "Memcpy HtoD", i * 200, i * 200 + 100).detail =
                static_cast<std::uint32_t>(i + 1);
        }
        ActivityDetail reduce;
        reduce.bytes = 5000;
        reduce.collective = m.data.strings.id("allreduce");
        m.data.details.push_back(reduce);
        addActivity(m.data, m.comm, ActivityKind::Kernel, "ncclDevKernel_AllReduce", 0, 500).detail = 3;
        QTemporaryDir folder;
        const std::string path = folder.filePath(QStringLiteral("trace.db")).toStdString();
        writeActivities(path, m.data, {}, true);
        const std::vector<AchievedRate> rates = achievedRates(path, 0, 1000);
        QCOMPARE(rates.size(), 2u);
        QCOMPARE(rates[0].what, std::string("host to device, rank 0, GPU 0"));
        QCOMPARE(rates[0].rate(), 3000 / 200e-9);
        QCOMPARE(rates[0].best, 2000 / 100e-9);
        QCOMPARE(rates[0].share(), 0.75);
        QCOMPARE(beyondCeilings(rates), std::string());
        QCOMPARE(rates[1].what, std::string("allreduce, rank 0"));
        QCOMPARE(rates[1].rate(), 5000 / 500e-9);
        QCOMPARE(achievedRates(path, 150, 250)[0].count, 1); // one copy lies in it
        QVERIFY_THROWS_EXCEPTION(Error, achievedRates(folder.filePath(QStringLiteral("none.db")).toStdString(), 0, 1));
    }
};

PIPEWRIGHT_TEST(TestDeviceTime, QCoreApplication)
#include "tst_devicetime.moc"
