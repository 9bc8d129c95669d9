// SPDX-License-Identifier: GPL-3.0-or-later
// Clocks of several ranks brought together, from messages, collectives, or the wall clock.
#include "testmain.h"
#include "traces/import/clockalignment.h"
#include "traces/store/activities.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

class TestClockAlignment : public QObject {
    Q_OBJECT

private:
    static void communicate(TraceData& data, std::uint32_t lane, const std::string& what, int peer, Nanoseconds start,
                            Nanoseconds end)
    {
        Activity& kernel = addActivity(data, lane, ActivityKind::Kernel, "ncclDevKernel_" + what, start, end);
        kernel.detail = static_cast<std::uint32_t>(data.details.size());
        ActivityDetail detail;
        detail.collective = data.strings.id(what);
        detail.peer = peer;
        data.details.push_back(detail);
    }

    /// Ranks in a row that send to their neighbours both ways, `latency` apart, each with a clock of its own; now and
    /// then an arrival is noticed far too late.
    static std::vector<TraceData> pipeline(const std::vector<Nanoseconds>& clocks, Nanoseconds latency)
    {
        std::vector<TraceData> traces(clocks.size());
        for (std::size_t r = 0; r < clocks.size(); ++r) {
            traces[r].rank = static_cast<int>(r);
            addLane(traces[r], TraceLane::Kind::Stream, static_cast<int>(r), 1, 7, 0, "stream 7");
        }
        for (int i = 0; i < 40; ++i)
            for (std::size_t r = 0; r + 1 < clocks.size(); ++r) {
                const Nanoseconds time = 10'000'000 + i * 1'000'000, late = i % 7 == 3 ? 400'000 : 0;
                const int a = static_cast<int>(r), b = a + 1;
                communicate(traces[r], 0, "send", b, time + clocks[r], time + 50'000 + clocks[r]);
                communicate(traces[r + 1], 0, "recv", a, time + clocks[r + 1],
                            time + 50'000 + latency + late + clocks[r + 1]);
                communicate(traces[r + 1], 0, "send", a, time + 500'000 + clocks[r + 1],
                            time + 550'000 + clocks[r + 1]);
                communicate(traces[r], 0, "recv", b, time + 500'000 + clocks[r], time + 550'000 + latency + clocks[r]);
            }
        return traces;
    }

private Q_SLOTS:
    void pingPongFindsTheOffsetWhateverTheLatency_data()
    {
        QTest::addColumn<qint64>("latency");
        QTest::newRow("rendezvous") << qint64{0};
        QTest::newRow("a slow link") << qint64{80'000};
    }

    void pingPongFindsTheOffsetWhateverTheLatency()
    {
        QFETCH(qint64, latency);
        auto traces = pipeline({0, 7'000'000, -3'000'000, 123'456}, latency);
        alignClocks(traces);
        const std::vector<Nanoseconds> expected{0, -7'000'000, 3'000'000, -123'456};
        for (std::size_t r = 0; r < traces.size(); ++r) {
            QCOMPARE(traces[r].clocks[0].offset, expected[r]);
            QCOMPARE(traces[r].clocks[0].method, std::string(r == 0 ? "reference" : "ping-pong"));
            QCOMPARE(traces[r].activities[0].start, Nanoseconds{10'000'000});
        }
        QCOMPARE(traces[1].clocks[0].events, std::int64_t{80});
    }

    void endsOfACollectiveCoincide()
    {
        std::vector<TraceData> traces(3);
        for (int r = 0; r < 3; ++r) {
            traces[r].rank = r;
            addLane(traces[r], TraceLane::Kind::Stream, r, 1, 7, 0, "stream 7");
            for (int i = 0; i < 9; ++i) // whoever comes first waits; one end is noticed late
                communicate(traces[r], 0, "allreduce", -1, i * 1000'000 + r * 5'000 + r * 77'000,
                            i * 1000'000 + 300'000 + r * 77'000 + (i == 4 && r == 1 ? 90'000 : 0));
        }
        alignClocks(traces);
        QCOMPARE(traces[2].clocks[0].offset, Nanoseconds{-154'000});
        QCOMPARE(traces[1].clocks[0].offset, Nanoseconds{-77'000});
        QCOMPARE(traces[1].clocks[0].method, std::string("shared collectives"));
        QCOMPARE(traces[1].clocks[0].residual, Nanoseconds{0});
    }

    void clocksThatCannotBeBroughtTogetherAreSaidToBe()
    {
        const auto warnings = [](std::initializer_list<std::int64_t> origins) {
            std::vector<TraceData> traces;
            for (const std::int64_t origin : origins) {
                TraceData& trace = traces.emplace_back();
                trace.rank = static_cast<int>(traces.size()) - 1;
                trace.originEpochNs = origin;
                addLane(trace, TraceLane::Kind::Thread, trace.rank, 1, 1, -1, "thread");
                addActivity(trace, 0, ActivityKind::Operator, "op", 5'000, 1'000'000);
            }
            alignClocks(traces);
            return toString(merged(std::move(traces)).report.diagnostics("t"));
        };
        constexpr std::int64_t now = 1'700'000'000'000'000'000, year = 31'536'000'000'000'000;
        QCOMPARE(warnings({now, now + 500, now + 900}), std::string());
        QVERIFY(warnings({now, 0}).find("warning: no clock, message or collective") != std::string::npos);
        QVERIFY(warnings({now, now + 500, now + year}).find("nothing else ran while this was recorded: rank 2")
                != std::string::npos);
    }

    void withoutAnythingInCommonTheWallClockCounts()
    {
        std::vector<TraceData> traces(3);
        for (int r = 0; r < 3; ++r) {
            TraceData& trace = traces[r];
            trace.rank = r;
            trace.originEpochNs = r == 2 ? 0 : 1'700'000'000'000'000'000 + r * 1'000;
            addLane(trace, TraceLane::Kind::Thread, r, 1, 1, -1, "thread");
            addActivity(trace, 0, ActivityKind::Operator, "op", 5'000, 6'000, 3);
        }
        alignClocks(traces);
        QCOMPARE(traces[1].clocks[0].method, std::string("wall clock"));
        QCOMPARE(traces[1].activities[0].start, Nanoseconds{6'000});
        QCOMPARE(traces[2].clocks[0].method, std::string("none"));
        const TraceData all = merged(std::move(traces));
        QCOMPARE(all.activities.size(), std::size_t{3});
        QCOMPARE(all.activities[0].start, Nanoseconds{0}); // times from the first of all
        QCOMPARE(all.originEpochNs, std::int64_t{1'700'000'000'000'005'000});
        QCOMPARE(all.lanes.size(), std::size_t{3});
        QCOMPARE(all.strings.text(all.activities[2].name), std::string("op"));
        QCOMPARE(all.clocks.size(), std::size_t{3});
    }
};

PIPEWRIGHT_TEST(TestClockAlignment, QCoreApplication)
#include "tst_clockalignment.moc"
