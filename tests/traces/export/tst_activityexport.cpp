// SPDX-License-Identifier: GPL-3.0-or-later
// An imported trace as Chrome and Perfetto read it: processes, tracks, slices, counters and arrows.
#include "testmain.h"
#include "traces/export/activityexport.h"
#include "traces/import/kineto.h"
#include "traces/import/traceimport.h"
#include "traces/store/activities.h"
#include "traces/store/recording.h"
#include "traces/store/tracereader.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <map>

using namespace pipewright;
using namespace pipewright::test;

namespace {

using Json = nlohmann::json;

/// Two ranks, each with a thread and a stream; a call of rank 0 within a range launches a kernel.
StoredActivities twoRanks()
{
    TraceData data;
    for (int rank = 0; rank < 2; ++rank) {
        const std::uint32_t thread = addLane(data, TraceLane::Kind::Thread, rank, 100 + rank, 1, -1, "thread 1");
        const std::uint32_t stream = addLane(data, TraceLane::Kind::Stream, rank, 100 + rank, 7, rank, "stream 7");
        const Nanoseconds start = 1000 + 10'000 * rank;
        addActivity(data, thread, ActivityKind::Range, "a \"step\"", start, start + 5000);
        addActivity(data, thread, ActivityKind::Runtime, "launch", start + 1000, start + 1500);
        addActivity(data, stream, ActivityKind::Kernel, "gemm", start + 2000, start + 4000);
        if (rank == 0)
            data.flows.push_back({thread, stream, start + 1200, start + 2000});
    }
    data.counters.push_back({0, 0, "GPU memory", {2000, 4000}, {64, 1.5e12}});
    data.counters.push_back({1, -1, "queue", {12'000}, {0.5}});
    data.ranks = 2;
    const QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("trace.db")).toStdString();
    writeActivities(path, data, {}, true);
    return readActivities(path);
}

Json chromeEvents(const StoredActivities& trace, const TraceStep& stretch)
{
    return Json::parse(joined([&](const Pieces& to) { chromeTrace(trace, stretch, to); }))["traceEvents"];
}

} // namespace

class TestActivityExport : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void chromeGetsEverythingOnTheTracksClock()
    {
        const StoredActivities trace = twoRanks();
        std::map<int, std::string> processes;
        std::map<std::string, double> starts;
        std::vector<double> memory;
        Json flowStart, flowEnd;
        int slices = 0;
        for (const Json& event : chromeEvents(trace, wholeOf(trace))) {
            const std::string phase = event["ph"];
            if (event["name"] == "process_name")
                processes[event["pid"]] = event["args"]["name"];
            if (phase == "X") {
                ++slices;
                starts[processes.at(event["pid"]) + ": " + event["name"].get<std::string>()] = event["ts"];
            }
            if (event["name"] == "GPU memory")
                memory.push_back(event["args"]["value"]);
            if (phase == "s")
                flowStart = event;
            if (phase == "f")
                flowEnd = event;
        }
        QCOMPARE(slices, 6);
        QCOMPARE(processes.size(), std::size_t(5)); // with the host that counts rank 1's queue
        const std::map<std::string, double> expected{
            {"rank 0, python 100: a \"step\"", 0},  {"rank 0, python 100: launch", 1},  {"rank 0, GPU 0: gemm", 2},
            {"rank 1, python 101: a \"step\"", 10}, {"rank 1, python 101: launch", 11}, {"rank 1, GPU 1: gemm", 12}};
        for (const auto& [name, start] : expected) {
            QVERIFY2(starts.contains(name), name.c_str());
            QCOMPARE(starts[name], start);
        }
        QCOMPARE(memory, (std::vector<double>{64, 1.5e12}));
        QCOMPARE(flowStart["ts"].get<double>(), 1.0); // at the call within the range
        QCOMPARE(flowEnd["ts"].get<double>(), 2.0);
        QCOMPARE(flowStart["id"].get<int>(), flowEnd["id"].get<int>());
    }

    void chromeTracesAreImportedAsWhatTheyWere()
    {
        // Two ranks of PyTorch, each with blocks, late launches, a copy, communication, and ranges that cross.
        const Folder folder;
        const Prediction prediction = predict(smallDesign("zb-h1", 2, 4));
        std::vector<std::string> files;
        for (int rank = 0; rank < 2; ++rank) {
            files.push_back(folder / ("rank" + std::to_string(rank) + ".json").c_str());
            std::string text = kineto(prediction.program, prediction.timeline, rank, 2, 2, 50'000'000, true);
            const std::string more =
                R"({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":3,"tid":9,"ts":800,"dur":100,
                    "args":{"device":3,"stream":9,"correlation":9001}},
                   {"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":100,"tid":1,"ts":750,"dur":5,
                    "args":{"correlation":9001}},
                   {"ph":"X","cat":"gpu_memset","name":"Memset","pid":0,"tid":9,"ts":990,"dur":20,
                    "args":{"device":0,"stream":9}},
                   {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":13,"ts":1500,"dur":900,
                    "args":{"device":0,"stream":13}},
                   {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":100,"tid":2,"ts":700,"dur":40},
                   {"ph":"X","cat":"user_annotation","name":"crossing","pid":100,"tid":2,"ts":720,"dur":900},
                   {"ph":"i","s":"t","name":"here","pid":100,"tid":2,"ts":710},
                   {"ph":"C","name":"memory","pid":0,"ts":700,"args":{"value":7}},)";
            text.insert(text.find("\"traceEvents\": [") + 16, more);
            std::ofstream(files.back()) << text;
        }
        const std::string first = folder / "first.db", second = folder / "second.db", again = folder / "again.json";
        const ImportedTrace before = importTraces(files, first, true);
        const StoredActivities trace = readActivities(first);
        std::ofstream(again) << joined([&](const Pieces& to) { chromeTrace(trace, wholeOf(trace), to); });
        const ImportedTrace after = importTraces({again}, second, true);
        const StoredActivities copy = readActivities(second);

        QVERIFY2(after.report.entries().empty(), toString(after.report.diagnostics("again")).c_str());
        QCOMPARE(after.ranks, before.ranks);
        QCOMPARE(after.slices, before.slices);
        QVERIFY(before.blocks > 0);
        QCOMPARE(after.blocks, before.blocks);
        QCOMPARE(after.steps, before.steps);
        QCOMPARE(copy.originEpochNs, trace.originEpochNs);
        const DeviceTimes was = deviceTimes(trace, LaunchCalls(trace), 0, endOf(trace)),
                          is = deviceTimes(copy, LaunchCalls(copy), 0, endOf(copy));
        QCOMPARE(is.devices.size(), was.devices.size());
        QCOMPARE(was.devices.size(), std::size_t{4});
        for (std::size_t d = 0; d < was.devices.size(); ++d) {
            QCOMPARE(is.devices[d].name, was.devices[d].name);
            for (int cause = 0; cause < deviceTimeCauses; ++cause)
                QCOMPARE(is.devices[d].time[cause], was.devices[d].time[cause]);
        }
        QVERIFY(was.devices[1].of(DeviceTimeCause::Copies) > 0);
        QVERIFY(was.devices[0].of(DeviceTimeCause::HostGap) > 0 && was.devices[0].of(DeviceTimeCause::NotKnown) > 0);
        std::map<ActivityKind, int> kinds, kindsOfCopy;
        for (const Track& track : trace.tracks)
            for (const ActivityKind kind : track.kind)
                ++kinds[kind];
        for (const Track& track : copy.tracks)
            for (const ActivityKind kind : track.kind)
                ++kindsOfCopy[kind];
        QCOMPARE(kindsOfCopy, kinds);
        QCOMPARE(copy.counters.size(), trace.counters.size());
        QCOMPARE(copy.counters[0].name, trace.counters[0].name);
        const TraceReader reader(first), reread(second);
        const Timeline measured = reader.timeline(prediction.program, 1),
                       remeasured = reread.timeline(prediction.program, 1);
        QCOMPARE(remeasured.start, measured.start);
        QCOMPARE(remeasured.end, measured.end);
    }

    void aStretchHoldsWhatLiesInItAndBeginsAtZero()
    {
        const StoredActivities trace = twoRanks();
        std::vector<std::pair<double, double>> slices;
        for (const Json& event : chromeEvents(trace, {"part", 4000, 12'500}))
            if (event["ph"] == "X")
                slices.emplace_back(event["ts"], event["dur"]);
        std::sort(slices.begin(), slices.end());
        // The ends of rank 0's range and kernel, the beginnings of rank 1's range and call.
        QCOMPARE(slices, (std::vector<std::pair<double, double>>{{0, 1}, {0, 2}, {7, 1.5}, {8, 0.5}}));
    }

    void perfettoGetsTheSameNames()
    {
        const StoredActivities trace = twoRanks();
        const std::string whole = joined([&](const Pieces& to) { perfettoTrace(trace, wholeOf(trace), to); });
        const auto count = [&](std::string_view part) {
            int found = 0;
            for (std::size_t at = whole.find(part); at != std::string::npos; at = whole.find(part, at + 1))
                ++found;
            return found;
        };
        QCOMPARE(count("rank 0, GPU 0"), 1);
        QCOMPARE(count("rank 1, python 101"), 1);
        QCOMPARE(count("stream 7"), 2);
        QCOMPARE(count("thread 1 2"), 2); // the call within the range, in the second row
        QCOMPARE(count("gemm"), 2);
        QCOMPARE(count("GPU memory"), 1);
        // Field 44 of an event is a counter's real number, field 47 the arrow that begins, field 48 the one that ends.
        QCOMPARE(count(std::string("\xe1\x02\0\0\0\0\0\0\xe0\x3f", 10)), 1); // 0.5
        QCOMPARE(count(std::string("\xf9\x02\x01\0\0\0\0\0\0\0", 10)), 1);
        QCOMPARE(count(std::string("\x81\x03\x01\0\0\0\0\0\0\0", 10)), 1);
    }
};

PIPEWRIGHT_TEST(TestActivityExport, QCoreApplication)
#include "tst_activityexport.moc"
