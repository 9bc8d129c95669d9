// SPDX-License-Identifier: GPL-3.0-or-later
// Chrome JSON of PyTorch's profiler: every kind of event, damaged and compressed files, and our own export.
#include "testmain.h"
#include "traces/import/chromejson.h"
#include "traces/import/kineto.h"
#include "traces/import/recognisedblocks.h"
#include "traces/import/traceimport.h"
#include "traces/store/recording.h"
#include "traces/store/tracereader.h"

#include "core/exchange/chrometrace.h"

#include <QTest>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <zlib.h>

using namespace pipewright;
using namespace pipewright::test;

class TestChromeJson : public QObject {
    Q_OBJECT

private:
    Folder m_folder;

    static TraceData importText(const std::string& text, const std::string& where = "trace.json")
    {
        return importChromeJson(*bytesOf(text), where);
    }

    static std::int64_t countOf(const TraceData& data, const std::string& reason)
    {
        std::int64_t count = 0;
        for (const auto& [name, entry] : data.report.entries())
            if (name.find(reason) != std::string::npos)
                count += entry.count;
        return count;
    }

    static const Activity* find(const TraceData& data, const std::string& name)
    {
        for (const Activity& activity : data.activities)
            if (data.strings.text(activity.name) == name)
                return &activity;
        return nullptr;
    }

private Q_SLOTS:
    void microsecondsAreReadToTheNanosecond_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("valid");
        QTest::addColumn<qint64>("nanoseconds");
        const auto row = [](const char* text, bool valid, qint64 ns) { QTest::newRow(text) << text << valid << ns; };
        row("0", true, 0);
        row("12", true, 12000);
        row("12.345", true, 12345);
        row("12.3", true, 12300);
        row("0.0005", true, 1);
        row("0.0004", true, 0);
        row("-7.001", true, -7001);
        row("1700000000000000.123", true, 1700000000000000123); // a float would lose this
        row("1.5e3", true, 1500000);
        row("-2E-1", true, -200);
        row("", false, 0);
        row("-", false, 0);
        row(".", false, 0);
        row("1.2.3", false, 0);
        row("12us", false, 0);
        row("nan", false, 0);
        row("1e300", false, 0);
        row("99999999999999999999", false, 0);
    }

    void microsecondsAreReadToTheNanosecond()
    {
        QFETCH(QString, text);
        QFETCH(bool, valid);
        QFETCH(qint64, nanoseconds);
        const auto time = parseMicroseconds(text.toStdString());
        QCOMPARE(time.has_value(), valid);
        if (valid)
            QCOMPARE(static_cast<qint64>(*time), nanoseconds);
    }

    void everyPhaseIsTakenOver()
    {
        const TraceData data = importText(everyPhase);
        QCOMPARE(data.report.lost(), std::int64_t{0});
        QCOMPARE(data.activities.size(), std::size_t{6});
        const Activity* copy = find(data, "Memcpy DtoH");
        QVERIFY(copy);
        QCOMPARE(copy->start, Nanoseconds{9500}); // the first event is time 0
        QCOMPARE(copy->end, Nanoseconds{11500});
        QCOMPARE(copy->correlation, 5u);
        QCOMPARE(data.details[copy->detail].bytes, Bytes{1024});
        QCOMPARE(data.details[copy->detail].copyKind, 2);
        QCOMPARE(data.lanes[copy->lane].device, 2);
        QVERIFY(data.lanes[copy->lane].kind == TraceLane::Kind::Stream);
        QCOMPARE(find(data, "outer")->end, Nanoseconds{3250});
        QCOMPARE(find(data, "inner")->end, Nanoseconds{2000});
        QCOMPARE(data.lanes[find(data, "inner")->lane].name, std::string("worker"));
        QCOMPARE(data.lanes[find(data, "inner")->lane].sortIndex, std::int64_t{4});
        QCOMPARE(find(data, "read")->end - find(data, "read")->start, Nanoseconds{3000});
        QCOMPARE(data.lanes[find(data, "read")->lane].name, std::string("io"));
        QVERIFY(find(data, "here")->kind() == ActivityKind::Mark);
        QCOMPARE(data.counters.size(), std::size_t{2});
        QCOMPARE(data.flows.size(), std::size_t{1});
        QCOMPARE(data.flows[0].to, Nanoseconds{9500});
    }

    void whatIsWrongWithAnEventCostsNothingButTheEvent_data()
    {
        QTest::addColumn<QByteArray>("events");
        QTest::addColumn<QString>("reason");
        QTest::addColumn<int>("kept"); ///< beside the two good ones
        const auto row = [](const char* name, const QByteArray& events, const char* reason, int kept) {
            QTest::newRow(name) << events << reason << kept;
        };
        row("an end without its beginning", "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":5}", "ends without", 0);
        row("a beginning without its end", "{\"ph\":\"B\",\"name\":\"open\",\"pid\":1,\"tid\":1,\"ts\":5}",
            "beginnings without", 1);
        row("a negative duration", "{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":-1}",
            "negative durations", 0);
        row("no time", "{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":1}", "without a time", 0);
        row("a time that is a word", "{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":1,\"ts\":\"soon\"}", "no number",
            0);
        row("no phase", "{\"name\":\"x\",\"pid\":1,\"tid\":1,\"ts\":1}", "without a phase", 0);
        row("an unknown phase", "{\"ph\":\"Q\",\"name\":\"x\",\"pid\":1,\"tid\":1,\"ts\":1}", "phases other than", 0);
        row("a control character",
            QByteArray("{\"ph\":\"X\",\"name\":\"a\x01\x02\nb\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}"), "characters",
            1);
        row("broken UTF-8", QByteArray("{\"ph\":\"X\",\"name\":\"a\xff\xc3(\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}"),
            "characters", 1);
        row("no JSON", "{\"ph\":\"X\",,,,\"name\" \"x\"}", "no JSON", 0);
        row("a number among the events", "17", "no events", 0);
        row("an arrow without its end", "{\"ph\":\"s\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":1}", "without their end", 0);
        row("an arrow without its beginning", "{\"ph\":\"f\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":1}",
            "without their beginning", 0);
        row("a counter of words", "{\"ph\":\"C\",\"name\":\"c\",\"pid\":1,\"ts\":1,\"args\":{\"a\":\"b\"}}",
            "without a number", 0);
        row("NaN", "{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":1,\"ts\":NaN,\"dur\":1}", "", 0);
    }

    void whatIsWrongWithAnEventCostsNothingButTheEvent()
    {
        QFETCH(QByteArray, events);
        QFETCH(QString, reason);
        QFETCH(int, kept);
        const std::string text =
            "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"before\",\"pid\":9,\"tid\":9,\"ts\":0,\"dur\":1},"
            + events.toStdString() + ",{\"ph\":\"X\",\"name\":\"behind\",\"pid\":9,\"tid\":9,\"ts\":8,\"dur\":1}]}";
        const TraceData data = importText(text);
        QVERIFY(find(data, "before") && find(data, "behind"));
        QCOMPARE(data.activities.size(), static_cast<std::size_t>(2 + kept));
        QVERIFY2(countOf(data, reason.toStdString()) == 1, toString(data.report.diagnostics("t")).c_str());
    }

    void aFileThatWasCutShortOpensAsFarAsItGoes()
    {
        const std::string whole = "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1},{\"ph\":\"X\","
                                  "\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1}]";
        QCOMPARE(importText(whole).activities.size(), std::size_t{2});
        const TraceData cut = importText(whole.substr(0, whole.size() - 9));
        QCOMPARE(cut.activities.size(), std::size_t{1});
        QCOMPARE(countOf(cut, "end of the file"), std::int64_t{1});
        QCOMPARE(importText(whole.substr(0, whole.size() - 1)).report.lost(),
                 std::int64_t{0}); // a list may lack its bracket
    }

    void whatIsNoTraceIsSaidToBeNone()
    {
        QVERIFY(errorOf([] { importText(""); }).find("empty") != std::string::npos);
        QVERIFY(errorOf([] { importText("hello"); }).find("no Chrome trace") != std::string::npos);
        QVERIFY(errorOf([] { importText("{\"a\": 1}"); }).find("no traceEvents") != std::string::npos);
        QVERIFY(errorOf([] { importText("{\"a\""); }).find("no Chrome trace") != std::string::npos);
        QVERIFY(errorOf([] { importText("[]"); }).find("no slice") != std::string::npos);
    }

    void compressedFilesAndLargeOnesAreStreams()
    {
        std::string text = "{\"traceEvents\":[";
        for (int i = 0; i < 60'000; ++i) // several pieces of the reader
            text += "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add \\\"quoted\\\" "
                    "\\\\\",\"pid\":1,\"tid\":1,\"ts\":"
                    + std::to_string(i) + ",\"dur\":0.5,\"args\":{\"External id\":" + std::to_string(i) + "}},\n";
        text += "{\"ph\":\"X\",\"name\":\"last\",\"pid\":1,\"tid\":1,\"ts\":60000,\"dur\":1}],\"baseTimeNanoseconds\":"
                "1700000000000000000}";
        const std::string path = m_folder / "trace-rank_3.json.gz";
        gzFile file = gzopen(path.c_str(), "wb");
        gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
        gzclose(file);
        const TraceData data = importTrace(path);
        QCOMPARE(data.activities.size(), std::size_t{60'001});
        QCOMPARE(data.report.lost(), std::int64_t{0});
        QCOMPARE(data.rank, 3); // of the file's name
        QCOMPARE(data.originEpochNs, std::int64_t{1'700'000'000'000'000'000});
        // Cut short within the compressed data.
        std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
        const TraceData cut = importTrace(path);
        QVERIFY(cut.activities.size() > 1000 && cut.activities.size() < 60'000);
        QCOMPARE(countOf(cut, "ends too early"), std::int64_t{1});
        int reports = 0;
        const WorkProgress stop{[&](double) { return ++reports < 2; }};
        QVERIFY(errorOf([&] { importChromeJson(*bytesOf(text), "t", stop); }).find("cancelled") != std::string::npos);
    }

    /// Long enough for the second thread, with damage in single events of several batches.
    void damageAmidALongTraceCostsNothingButItsEvents()
    {
        constexpr int events = 30'000;
        std::string text = "{\"distributedInfo\": {\"rank\": 2, \"world_size\": 4}, \"traceEvents\": [";
        for (int i = 0; i < events; ++i) {
            const std::string number = std::to_string(i);
            text += i == 0 ? "" : ",";
            if (i == 7'000 || i == 21'000) // brackets that match, and no JSON
                text += "{\"ph\" \"X\", \"name\": \"no colon\"}";
            else if (i == 14'000) // a control character, and arguments before the phase they are of
                text +=
                    "{\"args\": {\"correlation\": 9}, \"ph\": \"X\", \"name\": \"tab\there\", \"pid\": 1, \"tid\": 1, "
                    "\"ts\": 14000, \"dur\": 1}";
            else
                text += "{\"args\": {\"correlation\": " + number + "}, \"ph\": \"X\", \"name\": \"n" + number
                        + "\", \"pid\": 1, \"tid\": 1, \"ts\": " + number + ", \"dur\": 1}";
        }
        const TraceData data = importText(text + "], \"baseTimeNanoseconds\": 1700000000000000000}");
        QCOMPARE(data.report.read, std::int64_t{events});
        QCOMPARE(data.activities.size(), std::size_t{events - 2});
        QCOMPARE(countOf(data, "events that are no JSON"), std::int64_t{2});
        QCOMPARE(countOf(data, "characters that JSON does not allow"), std::int64_t{1});
        QVERIFY(data.report.entries().at("events that are no JSON").example.starts_with("event 7001, at byte "));
        QVERIFY(find(data, "tab here"));
        QCOMPARE(data.ranks, 4);
        QCOMPARE(data.originEpochNs, std::int64_t{1'700'000'000'000'000'000});
        std::size_t place = 0;
        for (int i = 0; i < events; ++i) {
            if (i == 7'000 || i == 21'000)
                continue;
            const Activity& activity = data.activities[place++];
            QCOMPARE(activity.start, Nanoseconds{i} * 1000);
            QCOMPARE(activity.correlation, static_cast<std::uint32_t>(i == 14'000 ? 9 : i));
            if (i != 14'000)
                QCOMPARE(data.strings.text(activity.name), "n" + std::to_string(i));
        }
        const std::string cut = text.substr(0, text.size() / 2);
        QVERIFY(importText(cut).activities.size() > events / 3);
    }

    void countersAreOfTheirDeviceOrProcess()
    {
        const TraceData data = importText(R"([
            {"ph": "C", "name": "memory", "pid": 3, "ts": 0, "args": {"MB": 7}}, {"ph": "C", "name": "queue", "pid": 8, "ts": 0, "args": {"n": 1}},
            {"ph": "M", "name": "process_name", "pid": 8, "args": {"name": "loader"}},
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 3, "tid": 7, "ts": 1, "dur": 2, "args": {"device": 3, "stream": 7}}])");
        QCOMPARE(data.counters[0].device, 3);
        QCOMPARE(data.counters[0].name, std::string("memory: MB"));
        QCOMPARE(data.counters[1].device, -1);
        QCOMPARE(data.counters[1].name, std::string("loader, queue: n"));
    }

    void ourOwnExportComesBack()
    {
        const Prediction prediction = predict(smallDesign("zb-h1", 3, 5));
        const TraceData data = importText(joined(
            [&](const Pieces& to) { chromeTrace(prediction.program, prediction.timeline, "own", nullptr, to); }));
        QCOMPARE(data.report.lost(), std::int64_t{0});
        QCOMPARE(data.activities.size(), prediction.program.tasks.size());
        for (TaskId id = 0; id < prediction.program.tasks.size(); ++id) {
            if (prediction.program.tasks[id].kind != TaskKind::Compute)
                continue;
            const Activity* slice = find(data, prediction.program.label(id));
            QVERIFY(slice);
            QCOMPARE(slice->start, prediction.timeline.start[id]);
            QCOMPARE(slice->end, prediction.timeline.end[id]);
        }
        QVERIFY(data.flows.size() >= static_cast<std::size_t>(prediction.program.transferCount()));
        QCOMPARE(data.counters.size(), std::size_t{3});
    }

    void ourOwnExportOfARecordingComesBackAsItsMeasuredBlocks()
    {
        const Prediction prediction = predict(smallDesign("zb-h1", 3, 5));
        Timeline measured = prediction.timeline;
        for (TaskId id = 0; id < prediction.program.tasks.size(); ++id) {
            measured.start[id] = 2 * measured.start[id] + 7000;
            measured.end[id] = 2 * measured.end[id] + 7000;
        }
        const std::string file = m_folder / "exported.json", store = m_folder / "exported.db";
        std::ofstream(file) << joined(
            [&](const Pieces& to) { chromeTrace(prediction.program, prediction.timeline, "own", &measured, to); });
        const ImportedTrace imported = importTraces({file}, store, true);
        QCOMPARE(imported.ranks, 3); // a device is a rank
        QCOMPARE(imported.steps, std::int64_t{1});
        QCOMPARE(imported.blocks, prediction.program.computeCount()); // the prediction's are none
        const Timeline read = TraceReader(store).timeline(prediction.program, 0);
        const Nanoseconds first = *std::min_element(measured.start.begin(), measured.start.end());
        for (TaskId id = 0; id < prediction.program.tasks.size(); ++id) {
            const Task& task = prediction.program.tasks[id];
            if (task.kind != TaskKind::Compute)
                continue;
            QCOMPARE(read.start[id], measured.start[id] - first);
            QCOMPARE(read.end[id], measured.end[id] - first);
        }
    }

    void aPipelineOfPyTorchIsLaidOverItsDesign_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<bool>("kernels");
        QTest::newRow("split backward, with kernels") << "zb-h1" << true;
        QTest::newRow("full backward, with kernels") << "1f1b" << true;
        QTest::newRow("without a device") << "1f1b" << false;
    }

    void aPipelineOfPyTorchIsLaidOverItsDesign()
    {
        QFETCH(QString, family);
        QFETCH(bool, kernels);
        const Design design = smallDesign(family.toUtf8().constData(), 2, 4);
        const Prediction prediction = predict(design);
        std::vector<std::string> files;
        for (int rank = 0; rank < 2; ++rank) {
            files.push_back(m_folder / ("rank" + std::to_string(rank) + ".json").c_str());
            std::ofstream(files.back()) << kineto(prediction.program, prediction.timeline, rank, 2, 3, 50'000'000,
                                                  kernels);
        }
        const std::string path = m_folder / "pytorch.db";
        const ImportedTrace imported = importTraces(files, path, true);
        QCOMPARE(imported.ranks, 2);
        QCOMPARE(imported.steps, std::int64_t{3});
        QCOMPARE(imported.blocks, 3 * prediction.program.computeCount());
        const TraceReader reader(path);
        QCOMPARE(reader.steps().size(), std::size_t{3});
        QVERIFY(reader.complete());
        const Timeline measured = reader.timeline(prediction.program, reader.medianStep());
        for (TaskId id = 0; id < prediction.program.tasks.size(); ++id) {
            if (prediction.program.tasks[id].kind != TaskKind::Compute) {
                QCOMPARE(measured.start[id], Nanoseconds{notRun});
                continue;
            }
            QCOMPARE(measured.start[id], prediction.timeline.start[id]);
            QCOMPARE(measured.end[id], prediction.timeline.end[id]);
        }
        QVERIFY(errorOf([&] { reader.timeline(predict(smallDesign("1f1b", 2, 2)).program, 1); }).find("does not have")
                != std::string::npos);
        QVERIFY(errorOf([&] { reader.design(); }).find("holds no design") != std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestChromeJson, QCoreApplication)
#include "tst_chromejson.moc"
