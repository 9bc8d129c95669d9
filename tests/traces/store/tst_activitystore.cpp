// SPDX-License-Identifier: GPL-3.0-or-later
// Other tools' traces in the store: written, read back, summed up per pixel, and refused when damaged.
#include "testmain.h"
#include "traces/store/activities.h"
#include "traces/store/activitystore.h"
#include "traces/store/recording.h"

#include <QTest>
#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <fstream>
#include <random>

using namespace pipewright;
using namespace pipewright::test;

class TestActivityStore : public QObject {
    Q_OBJECT

private:
    Folder m_folder;

    static std::size_t filesIn(const std::string& folder)
    {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
    }

private Q_SLOTS:
    void everythingComesBackAsItWent()
    {
        TraceData data;
        data.tool = "a tool";
        data.source = "a file";
        data.originEpochNs = 1'700'000'000'000'000'000;
        data.ranks = 2;
        const auto stream = addLane(data, TraceLane::Kind::Stream, 1, 77, 7, 3, "stream 7");
        const auto thread = addLane(data, TraceLane::Kind::Thread, 1, 77, 78, -1, "thread 78");
        addActivity(data, thread, ActivityKind::Range, "PP:0F0", 100, 900);
        addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", 150, 160, 42);
        addActivity(data, stream, ActivityKind::Kernel, "gemm", 200, 5'000'000'000, 42); // longer than 32 bits
        Activity& copy =
            addActivity(data, stream, ActivityKind::Memcpy, "Memcpy HtoD", 5'000'000'001, 5'000'000'100, 43);
        copy.detail = static_cast<std::uint32_t>(data.details.size());
        ActivityDetail detail;
        detail.bytes = 4096;
        detail.copyKind = 1;
        data.details.push_back(detail);
        addActivity(data, thread, ActivityKind::Mark, "a \"mark\" \xe2\x82\xac", 300, 300);
        data.counters.push_back({1, 3, "memory", {0, 10}, {1.5, 2.5}});
        data.flows.push_back({thread, stream, 155, 200});
        data.clocks.push_back({1, -5, 2, 9, "ping-pong"});
        data.report.read = 7;
        data.report.lose("a reason", "event 3", 2);
        const std::string path = m_folder / "all.db";
        writeActivities(path, data, {}, false);

        const StoredActivities stored = readActivities(path);
        QCOMPARE(stored.tool, data.tool);
        QCOMPARE(stored.source, data.source);
        QCOMPARE(stored.originEpochNs, data.originEpochNs);
        QCOMPARE(stored.ranks, 2);
        QCOMPARE(stored.lanes.size(), std::size_t{2});
        QCOMPARE(stored.lanes[0].device, 3);
        QCOMPARE(stored.lanes[1].device, -1);
        QCOMPARE(stored.slices(), std::size_t{5});
        QCOMPARE(stored.tracks.size(), std::size_t{3}); // one of the stream, two of the thread
        const Track& kernels = stored.tracks[0];
        QCOMPARE(stored.strings[kernels.name[0]], std::string("gemm"));
        QCOMPARE(kernels.end[0], Nanoseconds{5'000'000'000});
        QCOMPARE(kernels.correlation[1], 43u);
        QCOMPARE(stored.tracks[2].row, 1);
        QCOMPARE(stored.tracks[2].size(), std::size_t{2});
        QCOMPARE(stored.counters[0].value[1], 2.5);
        QCOMPARE(stored.flows[0].to, Nanoseconds{200});
        QCOMPARE(stored.clocks[0].method, std::string("ping-pong"));
        QCOMPARE(stored.report.read, std::int64_t{7});
        QCOMPARE(stored.report.kept, std::int64_t{5});
        QCOMPARE(stored.report.lost(), std::int64_t{2});

        SQLite::Database database(path);
        QCOMPARE(database.execAndGet("SELECT value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = shortName")
                     .getString(),
                 std::string("gemm"));
        QCOMPARE(database.execAndGet("SELECT bytes FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE streamId = 7 AND copyKind = 1")
                     .getInt(),
                 4096);
        QCOMPARE(database.execAndGet("SELECT (globalTid / 0x1000000) % 0x1000000 FROM NVTX_EVENTS WHERE eventType = 59")
                     .getInt(),
                 77);
        QCOMPARE(database.execAndGet("SELECT globalTid % 0x1000000 FROM NVTX_EVENTS WHERE end IS NULL").getInt(), 78);
        QVERIFY(!database.tableExists("CUPTI_ACTIVITY_KIND_MEMSET")); // only what there is data for
        const auto mark = static_cast<std::size_t>(kernels.record[1]);
        QCOMPARE(mark, std::size_t{1}); // of its own table
    }

    void aSliceTakesTheFirstFreeRowBelowTheOneItLiesIn()
    {
        // Against a search of all rows. Slices begin one after the other; some nest, some cross.
        std::uint32_t random = 7;
        const auto below = [&](std::uint32_t limit) {
            random = random * 1664525u + 1013904223u;
            return static_cast<Nanoseconds>((random >> 8) % limit);
        };
        for (int round = 0; round < 50; ++round) {
            TraceData data;
            const auto lane = addLane(data, TraceLane::Kind::Thread, 0, 1, 1, -1, "thread");
            Nanoseconds clock = 0;
            std::vector<std::size_t> rows;                           // of each slice
            std::vector<Nanoseconds> ends;                           // by row
            std::vector<std::pair<Nanoseconds, std::size_t>> around; // end and row of slices that lie in each other
            for (int i = 0; i < 200; ++i) {
                clock += 1 + below(16);
                const Nanoseconds end = clock + below(400);
                addActivity(data, lane, ActivityKind::Range, "r", clock, end);
                while (!around.empty() && around.back().first <= clock)
                    around.pop_back();
                std::size_t row = around.empty() ? 0 : around.back().second + 1;
                while (row < ends.size() && ends[row] > clock)
                    ++row;
                ends.resize(std::max(ends.size(), row + 1));
                ends[row] = end;
                rows.push_back(row);
                if (around.empty() || around.back().first >= end)
                    around.emplace_back(end, row);
            }
            const TrackLayout layout = layOut(data);
            QCOMPARE(layout.rows.size(), ends.size());
            for (std::size_t row = 0; row < layout.rows.size(); ++row)
                for (const std::uint32_t i : layout.rows[row].activities)
                    QCOMPARE(row, rows[i]);
        }
    }

    void manyOverlappingSlicesGetARowEach()
    {
        TraceData data;
        const auto lane = addLane(data, TraceLane::Kind::Thread, 0, 1, 1, -1, "thread");
        for (int i = 0; i < 400'000; ++i)
            addActivity(data, lane, ActivityKind::Range, "r", i, i + 1'000'000);
        QCOMPARE(layOut(data).rows.size(), std::size_t{400'000}); // a search of all rows for each would take minutes
    }

    void slicesThatCrossGetARowOfTheirOwnAndAreCounted()
    {
        TraceData data;
        const auto lane = addLane(data, TraceLane::Kind::Thread, 0, 1, 1, -1, "thread");
        addActivity(data, lane, ActivityKind::Operator, "crossing", 50, 150); // comes first in the file, not in time
        addActivity(data, lane, ActivityKind::Operator, "outer", 0, 100);
        addActivity(data, lane, ActivityKind::Operator, "inner", 10, 20);
        addActivity(data, lane, ActivityKind::Operator, "after", 150, 160);
        const std::string path = m_folder / "cross.db";
        writeActivities(path, data, {}, false);
        const StoredActivities stored = readActivities(path);
        QCOMPARE(stored.report.entries().size(), std::size_t{1});
        QVERIFY(!stored.report.entries().begin()->second.lost);
        QCOMPARE(stored.slices(), std::size_t{4});
        for (const Track& track : stored.tracks)
            for (std::size_t i = 1; i < track.size(); ++i)
                QVERIFY(track.end[i - 1] <= track.start[i]);
    }

    void aPixelShowsItsLongestSliceAndCountsTheRest()
    {
        std::mt19937_64 random(7);
        for (int round = 0; round < 120; ++round) {
            Track track;
            Nanoseconds clock = 0;
            const Nanoseconds unit = round % 4 == 0 ? 100'000'000 : 1; // slices of minutes, too
            const std::size_t count = 1 + random() % 3000;
            for (std::size_t i = 0; i < count; ++i) {
                clock += random() % 3 == 0 ? static_cast<Nanoseconds>(random() % 500) * unit : 0;
                track.start.push_back(clock);
                clock += static_cast<Nanoseconds>(random() % 7 == 0 ? random() % 5000 : random() % 40) * unit;
                track.end.push_back(clock);
            }
            track.index();
            const auto someTime = [&] {
                return static_cast<Nanoseconds>(random() % static_cast<std::uint64_t>(clock + 1));
            };
            const Nanoseconds from = someTime(), to = from + 1 + someTime();
            const int pixels = 1 + static_cast<int>(random() % (round % 2 == 0 ? 800 : 20));
            std::vector<VisibleSlice> visible;
            findVisible(track, from, to, pixels, visible);
            QVERIFY(static_cast<int>(visible.size()) <= 2 * pixels + 1);
            std::size_t inside = 0, shown = 0;
            for (std::size_t i = 0; i < count; ++i)
                inside += track.end[i] > from && track.start[i] < to ? 1 : 0;
            auto next = static_cast<std::size_t>(std::upper_bound(track.end.begin(), track.end.end(), from)
                                                 - track.end.begin());
            for (const VisibleSlice& slice : visible) {
                shown += slice.count;
                // In order, none twice or left out.
                QCOMPARE(track.start[next], slice.start);
                std::size_t longest = next;
                for (std::size_t j = next; j < next + slice.count; ++j)
                    if (track.end[j] - track.start[j] > track.end[longest] - track.start[longest])
                        longest = j;
                QCOMPARE(std::size_t{slice.slice}, longest);
                next += slice.count;
                QCOMPARE(track.end[next - 1], slice.end);
                QVERIFY(slice.end > from && slice.start < to);
                // What is folded lies in one pixel.
                const double width = static_cast<double>(to - from) / pixels;
                if (slice.count > 1)
                    QVERIFY(static_cast<double>(slice.end - std::max(slice.start, from)) <= width + 2);
            }
            QCOMPARE(shown, inside);
        }
    }

    void aViewLooksAtFewEntriesPerPixelHoweverFarOut()
    {
        std::mt19937 random(3);
        for (const bool inBursts : {false, true}) {
            Track track;
            Nanoseconds clock = 0;
            for (int i = 0; i < 200'000; ++i) {
                clock += inBursts && i % 997 == 0 ? 2'000'000 : random() % 200;
                track.start.push_back(clock);
                clock += 600 + random() % 900;
                track.end.push_back(clock);
            }
            track.index();
            constexpr int pixels = 300;
            std::vector<VisibleSlice> visible;
            for (double span = static_cast<double>(clock); span > 1000; span /= 1.2) {
                const auto from = static_cast<Nanoseconds>(0.4 * (static_cast<double>(clock) - span));
                visible.clear();
                const std::size_t looked =
                    findVisible(track, from, from + static_cast<Nanoseconds>(span), pixels, visible);
                QVERIFY2(looked < 64 * pixels, qPrintable(QStringLiteral("%1 ns: %2").arg(span).arg(looked)));
            }
        }
    }

    void aCancelledOrRefusedImportLeavesNothing()
    {
        const std::string folder = m_folder / "empty";
        std::filesystem::create_directory(folder);
        TraceData data = manyKernels(200'000, 4);
        int reports = 0;
        const WorkProgress stop{[&](double) { return ++reports < 2; }};
        const std::string message = errorOf([&] { writeActivities(folder + "/a.db", data, {}, false, stop); });
        QVERIFY2(message.find("cancelled") != std::string::npos, message.c_str());
        QCOMPARE(filesIn(folder), std::size_t{0});
        std::ofstream(folder + "/a.db") << "mine";
        QVERIFY(errorOf([&] { writeActivities(folder + "/a.db", data, {}, false); }).find("exists already")
                != std::string::npos);
        QCOMPARE(filesIn(folder), std::size_t{1});
        QCOMPARE(std::filesystem::file_size(folder + "/a.db"), std::uintmax_t{4});
        writeActivities(folder + "/a.db", data, {}, true);
        QCOMPARE(readActivities(folder + "/a.db").slices(), std::size_t{200'000});
        QVERIFY(!errorOf([&] { writeActivities(m_folder / "nowhere/a.db", data, {}, false); }).empty());
    }

    void aDamagedStoreIsRefused()
    {
        TraceData data = manyKernels(1000, 2);
        const std::string path = m_folder / "damaged.db";
        for (const char* damage :
             {"UPDATE SLICE_CHUNKS SET count = count + 1", "UPDATE SLICE_CHUNKS SET laneId = laneId + 9",
              "DELETE FROM StringIds WHERE id > 3", "UPDATE SLICE_CHUNKS SET starts = zeroblob(length(starts))",
              "UPDATE SLICE_CHUNKS SET count = -1", "DROP TABLE LANES"}) {
            writeActivities(path, data, {}, true);
            QVERIFY(errorOf([&] { readActivities(path); }).empty());
            SQLite::Database(path, SQLite::OPEN_READWRITE).exec(damage);
            const std::string message = errorOf([&] { readActivities(path); });
            QVERIFY2(message.find("damaged") != std::string::npos || message.find("cannot read") != std::string::npos,
                     damage);
        }
    }
};

PIPEWRIGHT_TEST(TestActivityStore, QCoreApplication)
#include "tst_activitystore.moc"
