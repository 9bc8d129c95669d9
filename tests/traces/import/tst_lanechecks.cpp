// SPDX-License-Identifier: GPL-3.0-or-later
// Lanes of imported traces: streams whose work overlaps, durations that are missing, and lanes of unknown kinds.
#include "testmain.h"
#include "traces/analysis/devicetime.h"
#include "traces/import/lanechecks.h"
#include "traces/import/traceimport.h"
#include "traces/store/activities.h"
#include "traces/store/recording.h"

#include <fmt/format.h>

#include <QTest>

#include <fstream>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// What the report says that has `part` in it; empty when there is nothing.
std::string told(const ImportReport& report, const std::string& part)
{
    for (const Diagnostic& diagnostic : report.diagnostics("trace"))
        if (toString(diagnostic).find(part) != std::string::npos)
            return toString(diagnostic);
    return {};
}

} // namespace

class TestLaneChecks : public QObject {
    Q_OBJECT

private:
    Folder m_folder;

    ImportedTrace read(const std::string& text)
    {
        std::ofstream(m_folder / "trace.json") << text;
        return importTraces({m_folder / "trace.json"}, m_folder / "trace.db", true);
    }
    StoredActivities stored() const { return readActivities(m_folder / "trace.db"); }

private Q_SLOTS:
    void aKernelThatRunsOverItsSuccessorsEndsWhereTheNextBegins()
    {
        // Twenty kernels of 100 us, 10 us apart; the tenth claims 1.6 s.
        std::string events;
        for (int i = 0; i < 20; ++i)
            events +=
                fmt::format(R"(,{{"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":9,"tid":1,"ts":{},)"
                            R"("dur":5,"args":{{"correlation":{}}}}},)"
                            R"({{"ph":"X","cat":"kernel","name":"k{}","pid":0,"tid":7,"ts":{},"dur":{},)"
                            R"("args":{{"device":0,"stream":7,"correlation":{}}}}})",
                            950 + 110 * i, i + 1, i, 1000 + 110 * i, i == 9 ? 1'600'000 : 100, i + 1);
        const ImportedTrace imported = read("[" + events.substr(1) + "]");
        const std::string warning = told(imported.report, "1 of the kernels and copies lasted beyond the start of the "
                                                          "next one on their stream");
        QVERIFY2(warning.find("1.6 s off") != std::string::npos, warning.c_str());
        QVERIFY2(warning.find("k9 on GPU 0: stream 7") != std::string::npos, warning.c_str());
        QVERIFY(warning.find("warning") != std::string::npos);
        const StoredActivities trace = stored();
        const DeviceTimes times = deviceTimes(trace, LaunchCalls(trace), 0, endOf(trace));
        QCOMPARE(times.devices[0].of(DeviceTimeCause::Computing), Nanoseconds{19 * 100'000 + 110'000});
        QCOMPARE(endOf(trace), Nanoseconds{50'000 + 20 * 110'000 - 10'000});
        QVERIFY(!told(trace.report, "lasted beyond").empty()); // whoever opens the trace is warned too
    }

    void onlyTheWorkOfOneStreamIsClipped()
    {
        TraceData data;
        const auto stream = addLane(data, TraceLane::Kind::Stream, 0, 1, 7, 0, "stream 7");
        const auto other = addLane(data, TraceLane::Kind::Stream, 0, 1, 8, 0, "stream 8");
        const auto thread = addLane(data, TraceLane::Kind::Thread, 0, 1, 1, -1, "thread 1");
        addActivity(data, stream, ActivityKind::Kernel, "first", 0, 100);
        addActivity(data, other, ActivityKind::Kernel, "beside", 50, 150);
        addActivity(data, thread, ActivityKind::Range, "range", 10, 120);
        addActivity(data, thread, ActivityKind::Range, "crossing", 20, 130);
        addActivity(data, stream, ActivityKind::Memset, "without a length", 60, 60);
        addActivity(data, stream, ActivityKind::GpuRange, "annotation", 0, 300);
        addActivity(data, stream, ActivityKind::Memcpy, "touching", 100, 200);
        for (const std::int64_t node : {4, 5}) { // two branches of a graph
            data.details.emplace_back().graphNode = node;
            addActivity(data, other, ActivityKind::Kernel, "branch", 1000 + node, 9000).detail =
                static_cast<std::uint32_t>(data.details.size() - 1);
        }
        const std::vector<Activity> before = data.activities;
        clipToNextStart(data);
        QVERIFY(data.report.entries().empty());
        for (std::size_t i = 0; i < before.size(); ++i)
            QCOMPARE(data.activities[i].end, before[i].end);
        // What is not of a graph is clipped, also behind branches.
        addActivity(data, other, ActivityKind::Kernel, "late", 5000, 6000);
        clipToNextStart(data);
        QCOMPARE(std::count_if(data.activities.begin(), data.activities.end(),
                               [](const Activity& a) { return a.end == 5000; }),
                 std::ptrdiff_t{2}); // both branches
    }

    void whatRoundingLeavesIsNoWarning()
    {
        TraceData data;
        const auto stream = addLane(data, TraceLane::Kind::Stream, 0, 1, 7, 0, "stream 7");
        addActivity(data, stream, ActivityKind::Kernel, "first", 0, 5001);
        addActivity(data, stream, ActivityKind::Kernel, "second", 5000, 10'000);
        clipToNextStart(data);
        QCOMPARE(data.activities[0].end, Nanoseconds{5000});
        const Diagnostics told = data.report.diagnostics("trace");
        QVERIFY(told.size() == 1 && told[0].severity == Severity::Note && told[0].what.starts_with("1 repaired"));
    }

    void durationsThatAreMissingAreCountedAndNamed()
    {
        const ImportedTrace imported = read(R"([
            {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":0,"dur":5,"args":{"device":0,"stream":7}},
            {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"args":{"device":0,"stream":7}},
            {"ph":"X","cat":"gpu_memcpy","name":"copy","pid":0,"tid":7,"ts":20,"args":{"device":0,"stream":7}},
            {"ph":"X","cat":"cpu_op","name":"op","pid":9,"tid":1,"ts":0}])");
        const std::string warning = told(imported.report, "durations of kernels and copies");
        QVERIFY2(warning.find("2 left out") != std::string::npos, warning.c_str());
        QVERIFY2(warning.find("gemm, event 2") != std::string::npos, warning.c_str());
        QVERIFY(told(imported.report, "slices without a duration").find("op, event 4") != std::string::npos);
    }

    void lanesOfUnknownKindsAreNamedWithTheirTime_data()
    {
        QTest::addColumn<QByteArray>("events");
        QTest::addColumn<QString>("says");
        // Times and names as torch_npu and JAX write them: no category says that these are a device's.
        QTest::newRow("Ascend") << QByteArray(R"(
            {"ph":"M","name":"process_name","pid":31,"tid":0,"args":{"name":"Ascend Hardware"}},
            {"ph":"M","name":"process_labels","pid":31,"tid":0,"args":{"labels":"NPU"}},
            {"ph":"M","name":"thread_name","pid":31,"tid":2,"args":{"name":"Stream 2"}},
            {"ph":"X","name":"MatMulV2","pid":31,"tid":2,"ts":"1747100000123496.280","dur":50.25},
            {"ph":"X","name":"MatMulV2","pid":31,"tid":2,"ts":"1747100000123596.980","dur":50.25})")
                                << "whose 100.5 us counts as nobody's work: Ascend Hardware, NPU: Stream 2 (2 slices, "
                                   "100.5 us)";
        QTest::newRow("JAX") << QByteArray(R"(
            {"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},
            {"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream 14"}},
            {"ph":"X","pid":1,"tid":14,"ts":1000.0,"dur":100.0,"name":"gemm_fusion_dot.1","args":{"hlo_op":"dot.1"}},
            {"ph":"X","pid":1,"tid":14,"ts":1020.0,"dur":10.0,"name":"inside","args":{}})")
                             << "whose 100 us counts as nobody's work: /device:GPU:0: Stream 14 (2 slices, "
                                "100 us)";
        QTest::newRow("MTIA") << QByteArray(R"(
            {"ph":"X","cat":"mtia_ccp_events","name":"fba","pid":4,"tid":3,"ts":0,"dur":7,"args":{"device":0}})")
                              << "process 4: thread 3 (1 slices, 7 us)";
    }

    void lanesOfUnknownKindsAreNamedWithTheirTime()
    {
        QFETCH(QByteArray, events);
        QFETCH(QString, says);
        const std::string known =
            R"([{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":1,"ts":"1747100000123490.000","dur":9},)"
            R"({"ph":"X","cat":"Trace","name":"PyTorch Profiler","pid":"Spans","tid":"PyTorch Profiler",)"
            R"("ts":"1747100000123490.000","dur":99})";
        const ImportedTrace imported = read(known + "," + events.toStdString() + "]");
        QVERIFY2(!told(imported.report, says.toStdString()).empty(),
                 toString(imported.report.diagnostics("t")).c_str());
        QVERIFY(!told(stored().report, says.toStdString()).empty());
        read(known + "]");
        QVERIFY(stored().report.entries().empty()); // nothing is unknown here
    }

    void launchesOfOtherAcceleratorsAreKnown()
    {
        read(R"([{"ph":"X","cat":"xpu_runtime","name":"urEnqueueKernelLaunch","pid":9,"tid":1,"ts":50,"dur":5,
                    "args":{"correlation":2}},
                   {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":0,"dur":5,
                    "args":{"device":0,"stream":7,"correlation":1}},
                   {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":60,"dur":5,
                    "args":{"device":0,"stream":7,"correlation":2}}])");
        const StoredActivities trace = stored();
        const DeviceTimes times = deviceTimes(trace, LaunchCalls(trace), 0, endOf(trace));
        QCOMPARE(times.devices[0].of(DeviceTimeCause::HostGap), Nanoseconds{55'000});
    }

    void arrowsOfWorkFromBeforeTheRecordingAreNoLoss()
    {
        const std::string kernel =
            R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":5,"args":{"device":0,"stream":7}},)";
        const std::string range = R"({"ph":"X","cat":"user_annotation","name":"r","pid":9,"tid":1,"ts":0,"dur":20},)";
        const auto arrow = [](int process, int thread) {
            return fmt::format(R"({{"ph":"f","bp":"e","id":3,"cat":"ac2g","name":"ac2g","pid":{},"tid":{},"ts":5}})",
                               process, thread);
        };
        QVERIFY(told(read("[" + kernel + range + arrow(0, 7) + "]").report, "arrows").empty());
        QVERIFY(!told(read("[" + kernel + range + arrow(9, 1) + "]").report, "arrows without their beginning").empty());
    }
};

PIPEWRIGHT_TEST(TestLaneChecks, QCoreApplication)
#include "tst_lanechecks.moc"
