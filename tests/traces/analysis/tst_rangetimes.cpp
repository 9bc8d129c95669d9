// SPDX-License-Identifier: GPL-3.0-or-later
// What was launched within named ranges, of a small recording of the shape that DeepSeek published of a DualPipe step:
// parts of a block as ranges of the host, computing on one stream, and the exchange between experts on another.
#include "testmain.h"
#include "traces/analysis/rangetimes.h"
#include "traces/store/storedactivities.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// Two overlapped pairs of a forward and a backward, 1000 ns apart; kernels run after their launch.
StoredActivities dualPipeStep()
{
    TraceData data;
    const std::uint32_t thread = addLane(data, TraceLane::Kind::Thread, 0, 100, 1, -1, "thread 1");
    const std::uint32_t compute = addLane(data, TraceLane::Kind::Stream, 0, 100, 7, 0, "stream 7");
    const std::uint32_t exchange = addLane(data, TraceLane::Kind::Stream, 0, 100, 16, 0, "stream 16");
    data.lanes[exchange].communication = true;
    std::uint32_t launch = 0;
    const auto part = [&](const char* name, Nanoseconds at, const char* kernel, std::uint32_t stream, Nanoseconds start,
                          Nanoseconds length) {
        addActivity(data, thread, ActivityKind::Range, name, at, at + 20);
        addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", at + 5, at + 10, ++launch);
        addActivity(data, stream, ActivityKind::Kernel, kernel, start, start + length, launch);
    };
    for (const Nanoseconds begin : {Nanoseconds(0), Nanoseconds(1000)}) {
        addActivity(data, thread, ActivityKind::Range, "ProfilerStep#1", begin, begin + 900);
        addActivity(data, thread, ActivityKind::Range, "forward & backward", begin, begin + 200);
        part("attn(F)", begin + 10, "flash_fwd", compute, begin + 300, 100);
        part("dispatch(F)", begin + 40, "a_copy_of_its_own", exchange, begin + 400, 150);
        part("mlp(B)", begin + 70, "cutlass_gemm", compute, begin + 400, 120);
        part("mlp(W)", begin + 100, "cutlass_gemm", compute, begin + 520, 60);
        // Launched by the block itself, in none of its parts.
        addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", begin + 150, begin + 160, ++launch);
        addActivity(data, compute, ActivityKind::Kernel, "fill", begin + 600, begin + 607, launch);
    }
    return stored(std::move(data));
}

} // namespace

class TestRangeTimes : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void rangesOfGlooAreCommunication()
    {
        TraceData data;
        const std::uint32_t thread = addLane(data, TraceLane::Kind::Thread, 0, 100, 1, -1, "thread 1");
        addActivity(data, thread, ActivityKind::Range, "forward", 0, 50);
        addActivity(data, thread, ActivityKind::Range, "gloo:all_reduce", 50, 80);
        addActivity(data, thread, ActivityKind::Range, "gloo:all_reduce", 90, 120);
        const std::vector<RangeTime> times = rangeTimes(stored(std::move(data)), 0, 200);
        QCOMPARE(times.size(), std::size_t{2});
        QCOMPARE(times[0].name, std::string("gloo:all_reduce"));
        QCOMPARE(times[0].communication, 60);
        QCOMPARE(times[0].host, 60);
        QCOMPARE(times[1].communication, 0);
    }

    void partsOfBlocksHaveTheTimesOfWhatTheyLaunched()
    {
        const std::vector<RangeTime> times = rangeTimes(dualPipeStep(), 0, 2000);
        const auto check = [&](std::size_t at, const char* name, Nanoseconds host, Nanoseconds computing,
                               Nanoseconds communication) {
            QVERIFY(at < times.size());
            QCOMPARE(times[at].name, std::string(name));
            QCOMPARE(times[at].count, std::int64_t(2));
            QCOMPARE(times[at].host, host);
            QCOMPARE(times[at].computing, computing);
            QCOMPARE(times[at].communication, communication);
        };
        QCOMPARE(times.size(), std::size_t(5)); // without the profiler's own marks
        check(0, "dispatch(F)", 40, 0, 300);    // known by its stream, as its name says nothing
        check(1, "mlp(B)", 40, 240, 0);
        check(2, "attn(F)", 40, 200, 0);
        check(3, "mlp(W)", 40, 120, 0);
        check(4, "forward & backward", 400, 14, 0); // the innermost range has the launch
    }

    void rangesOutsideTheStretchAreLeftOut()
    {
        const std::vector<RangeTime> times = rangeTimes(dualPipeStep(), 1000, 1060);
        QCOMPARE(times.size(), std::size_t(3)); // the block and its first two parts
        // Whose ranges are left out has its launches counted for the block around.
        QCOMPARE(times[0].name, std::string("forward & backward"));
        QCOMPARE(times[0].computing, Nanoseconds(120 + 60 + 7));
        QCOMPARE(times[1].name, std::string("dispatch(F)"));
        QCOMPARE(times[1].count, std::int64_t(1));
        QCOMPARE(times[1].communication, Nanoseconds(150));
    }
};

PIPEWRIGHT_TEST(TestRangeTimes, QCoreApplication)
#include "tst_rangetimes.moc"
