// SPDX-License-Identifier: GPL-3.0-or-later
// What a stretch of a trace adds up to, against a slow count.
#include "testmain.h"
#include "traces/analysis/activitysummary.h"
#include "traces/store/storedactivities.h"

#include <QTest>

#include <map>
#include <random>

using namespace pipewright;
using namespace pipewright::test;

namespace {

const NameSummary* named(const ActivitySummary& summary, const StoredActivities& trace, const std::string& name)
{
    for (const NameSummary& entry : summary.names)
        if (trace.strings[entry.name] == name)
            return &entry;
    return nullptr;
}

} // namespace

class TestActivitySummary : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void namesAreShortenedToWhatTellsThemApart()
    {
        const auto shortened = [](const char* name) { return std::string(withoutScope(name)); };
        QCOMPARE(shortened("void at::native::(anonymous namespace)::layer_norm<float, a::b>(int)"),
                 std::string("layer_norm<float, a::b>(int)"));
        QCOMPARE(shortened("cub::Sort(int)"), std::string("Sort(int)"));
        QCOMPARE(shortened("void gemm<1>"), std::string("gemm<1>"));
        QCOMPARE(shortened("ProfilerStep#12"), std::string("Step#12"));
        for (const char* whole :
             {"aten::addmm", "Memcpy HtoD (Device -> Pinned)", "void", "", "train.py(12): step", "::"})
            QCOMPARE(shortened(whole), std::string(whole));
    }

    void slicesCountAsFarAsTheyLieInTheStretch()
    {
        TraceData data;
        const auto stream = addLane(data, TraceLane::Kind::Stream, 0, 1, 7, 0, "stream 7");
        addActivity(data, stream, ActivityKind::Kernel, "gemm", 100, 200);
        addActivity(data, stream, ActivityKind::Kernel, "gemm", 300, 500);
        addActivity(data, stream, ActivityKind::Memcpy, "copy", 600, 700);
        const StoredActivities trace = stored(std::move(data));
        const ActivitySummary summary = summarise(trace, 150, 400);
        QCOMPARE(summary.names.size(), 1u);
        QCOMPARE(summary.names[0].count, 2);
        QCOMPARE(summary.names[0].total, 150);
        QCOMPARE(summary.names[0].longest, 200); // of the whole slice
        QCOMPARE(summary.lanes.size(), 1u);
        QCOMPARE(summary.lanes[0].busy, 150);
        QCOMPARE(summary.lanes[0].share, 0.6);
        QVERIFY(!named(summary, trace, "copy"));
        QVERIFY(summarise(trace, 200, 300).names.empty()); // touching is not lying in it
    }

    void nestedSlicesMakeALaneBusyOnce()
    {
        TraceData data;
        const auto thread = addLane(data, TraceLane::Kind::Thread, 0, 1, 1, -1, "thread");
        addActivity(data, thread, ActivityKind::Range, "step", 0, 1000);
        addActivity(data, thread, ActivityKind::Operator, "linear", 100, 400);
        addActivity(data, thread, ActivityKind::Operator, "linear", 500, 1200); // sticks out
        const StoredActivities trace = stored(std::move(data));
        const ActivitySummary summary = summarise(trace, 0, 2000);
        QCOMPARE(summary.lanes[0].busy, 1200);
        QCOMPARE(summary.lanes[0].slices, 3);
        QCOMPARE(named(summary, trace, "linear")->total, 1000);
    }

    void randomTracesAgreeWithACountPerNanosecond()
    {
        std::mt19937 random(7);
        for (int round = 0; round < 40; ++round) {
            TraceData data;
            const auto lane = addLane(data, TraceLane::Kind::Thread, 0, 1, 1, -1, "thread");
            std::vector<std::pair<int, int>> slices;
            for (int i = 0; i < 30; ++i) {
                const int start = static_cast<int>(random() % 300), end = start + 1 + static_cast<int>(random() % 60);
                slices.emplace_back(start, end);
                addActivity(data, lane, ActivityKind::Range, "n" + std::to_string(i % 5), start, end);
            }
            const StoredActivities trace = stored(std::move(data));
            const int from = static_cast<int>(random() % 200), to = from + 1 + static_cast<int>(random() % 150);
            Nanoseconds busy = 0;
            std::map<std::string, Nanoseconds> total;
            for (int t = from; t < to; ++t) {
                bool any = false;
                for (std::size_t i = 0; i < slices.size(); ++i)
                    if (slices[i].first <= t && t < slices[i].second) {
                        any = true;
                        ++total["n" + std::to_string(i % 5)];
                    }
                busy += any;
            }
            const ActivitySummary summary = summarise(trace, from, to);
            QCOMPARE(summary.lanes[0].busy, busy);
            for (const auto& [name, sum] : total)
                QCOMPARE(named(summary, trace, name)->total, sum);
            QCOMPARE(summary.names.size(), total.size());
        }
    }
};

PIPEWRIGHT_TEST(TestActivitySummary, NoApplication)
#include "tst_activitysummary.moc"
