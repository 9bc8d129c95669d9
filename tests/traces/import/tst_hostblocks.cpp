// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks in traces of PyTorch on CPUs: waits are no work, and stock schedules are read without names.
#include "makers/designs.h"
#include "testmain.h"
#include "traces/analysis/calibration.h"
#include "traces/import/gloo.h"
#include "traces/import/traceimport.h"
#include "traces/store/recording.h"
#include "traces/store/tracereader.h"

#include <QTest>

#include <fstream>
#include <map>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr int ranks = 4, microbatches = 6;
constexpr Nanoseconds stepLength = 400'000'000;

struct Written {
    Folder folder;
    std::vector<std::string> files;
    std::string store;
    Prediction prediction;

    explicit Written(const char* family) : prediction(predict(familyDesign(family, ranks, microbatches)))
    {
        store = folder / "trace.db";
    }
    void write(int rank, const std::string& text)
    {
        files.push_back(folder / ("rank" + std::to_string(rank) + ".json").c_str());
        std::ofstream(files.back()) << text;
    }
    void writeAll(GlooSchedule schedule, bool profilerSteps = true, bool arrows = true)
    {
        for (int rank = 0; rank < ranks; ++rank)
            write(rank, GlooRank(prediction.program, prediction.timeline, rank, schedule)
                            .file(ranks, 3, stepLength, profilerSteps, arrows));
    }
    ImportedTrace import() const { return importTraces(files, store, true); }

    std::string complaint() const
    {
        const ImportedTrace imported = import();
        for (const auto& [reason, entry] : imported.report.entries())
            if (reason.find("cannot be recognised") != std::string::npos)
                return reason;
        return {};
    }
};

} // namespace

class TestHostBlocks : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void blocksBeginWhereTheirDataHasCome_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("schedule");
        QTest::newRow("named, 1F1B") << "1f1b" << int(GlooSchedule::Named);
        QTest::newRow("named, split backward") << "zb-h1" << int(GlooSchedule::Named);
        QTest::newRow("stock GPipe") << "gpipe" << int(GlooSchedule::GPipe);
        QTest::newRow("stock 1F1B") << "1f1b" << int(GlooSchedule::OneForwardOneBackward);
    }

    void blocksBeginWhereTheirDataHasCome()
    {
        QFETCH(QString, family);
        QFETCH(int, schedule);
        Written w(family.toUtf8().constData());
        w.writeAll(static_cast<GlooSchedule>(schedule));
        QVERIFY2(w.complaint().empty(), w.complaint().c_str());
        const ImportedTrace imported = w.import();
        QCOMPARE(imported.blocks, 3 * w.prediction.program.computeCount());
        QCOMPARE(imported.steps, std::int64_t{3});
        const TraceReader reader(w.store);
        const Program& program = w.prediction.program;
        const Timeline& expected = w.prediction.timeline;
        const Timeline measured = reader.timeline(program, 1);
        int transfers = 0;
        for (TaskId id = 0; id < program.tasks.size(); ++id) {
            const Task& task = program.tasks[id];
            if (task.kind == TaskKind::Compute) {
                QVERIFY2(measured.start[id] == expected.start[id]
                             && measured.end[id] == expected.end[id] - betweenBlocks,
                         program.label(id).c_str());
            } else if (measured.start[id] != notRun) { // someone waited for it
                ++transfers;
                QCOMPARE(measured.start[id], expected.end[program.afterData[id]] - betweenBlocks);
                QVERIFY(measured.end[id] >= expected.end[id]);
            }
        }
        QVERIFY(transfers >= 2 * (ranks - 1)); // the first and the last microbatch are waited for everywhere
        QVERIFY(transfers < program.transferCount());
    }

    void aBlockThatDoesNothingHasNoWait()
    {
        // PyTorch's first stage does nothing in I but wait for its gradient.
        Written w("zb-h1");
        w.writeAll(GlooSchedule::Named);
        w.files.erase(w.files.begin());
        w.write(0, R"({"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":4},
            "baseTimeNanoseconds":1700000000000000000,"traceEvents":[
            {"ph":"X","cat":"user_annotation","name":"PP:0RECV_B0","pid":7,"tid":7,"ts":1000,"dur":1},
            {"ph":"X","cat":"user_annotation","name":"gloo:recv","pid":7,"tid":7,"ts":1000,"dur":8000},
            {"ph":"X","cat":"user_annotation","name":"PP:0I0","pid":7,"tid":7,"ts":1002,"dur":8010},
            {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":20000,"dur":10}]})");
        w.import();
        const Timeline measured = TraceReader(w.store).timeline(w.prediction.program, 0);
        for (TaskId id = 0; id < w.prediction.program.tasks.size(); ++id)
            if (w.prediction.program.label(id) == "I0.0")
                QCOMPARE(measured.end[id] - measured.start[id], Nanoseconds{12'000});
    }

    void kernelsAreTheTimesOfAStockScheduleOnADevice()
    {
        // The first of two ranks with two microbatches. Its host is far ahead of its device, and autograd has a thread.
        std::string events;
        int correlation = 0;
        const auto slice = [&](const char* category, const char* name, int thread, int from, int to,
                               const std::string& args = {}) {
            events +=
                fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}},)",
                            category, name, thread == 7 ? 0 : 100, thread, from, to - from, args);
        };
        const auto block = [&](bool forward, int microbatch, int call, int from, int to) {
            const int thread = forward ? 1 : 2;
            slice("cpu_op", forward ? "aten::linear" : "autograd::engine::evaluate_function: LinearBackward0", thread,
                  call, call + 5);
            const std::string id = fmt::format(R"("correlation":{})", ++correlation);
            slice("cuda_runtime", "cudaLaunchKernel", thread, call + 1, call + 2, id);
            slice("kernel", "gemm", 7, from, to, id + R"(,"device":0,"stream":7)");
            events += fmt::format(
                R"({{"ph":"{}","bp":"e","id":{},"cat":"fwdbwd","name":"fwdbwd","pid":100,"tid":{},"ts":{}}},)",
                forward ? 's' : 'f', microbatch, thread, call);
        };
        slice("user_annotation", "ProfilerStep#1", 1, 0, 10'000);
        block(true, 0, 10, 1000, 2000);
        slice("cpu_op", "c10d::send", 1, 20, 21);
        block(true, 1, 30, 2000, 3000);
        slice("cpu_op", "c10d::send", 1, 40, 41);
        slice("cpu_op", "c10d::recv_", 1, 42, 43);
        block(false, 0, 50, 5000, 7000);
        slice("cpu_op", "c10d::recv_", 1, 60, 61);
        block(false, 1, 70, 7500, 9500);
        const Folder folder;
        const std::string file = folder / "rank0.json", store = folder / "trace.db";
        std::ofstream(file) << R"({"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":2},"traceEvents":[)"
                            << events << "{}]}";
        QCOMPARE(importTraces({file}, store, true).blocks, std::int64_t{4});
        const Program program = predict(familyDesign("1f1b", 2, 2)).program;
        const Timeline measured = TraceReader(store).timeline(program, 0);
        const std::map<std::string, std::pair<int, int>> expected{
            {"F0.0", {0, 1000}}, {"F0.1", {1000, 2000}}, {"B0.0", {4000, 6000}}, {"B0.1", {6500, 8500}}};
        int found = 0;
        for (TaskId id = 0; id < program.tasks.size(); ++id)
            if (const auto block = expected.find(program.label(id)); block != expected.end()) {
                ++found;
                QCOMPARE(measured.start[id], Nanoseconds{1000} * block->second.first);
                QCOMPARE(measured.end[id], Nanoseconds{1000} * block->second.second);
            }
        QCOMPARE(found, 4);
    }

    void aTraceTeachesOnlyADesignOfTheScheduleThatRan()
    {
        Written gpipe("gpipe");
        gpipe.writeAll(GlooSchedule::GPipe);
        (void)gpipe.import();
        const TraceReader trace(gpipe.store);
        const auto complaint = [&](const char* family) {
            return errorOf([&] { calibrate(familyDesign(family, ranks, microbatches), trace, "gpipe.db"); });
        };
        QCOMPARE(complaint("gpipe"), std::string());
        const std::string why = complaint("1f1b");
        QVERIFY2(why.find("another schedule ran: on device 0 F0.4 came before B0.0") != std::string::npos, why.c_str());
    }

    void whatCannotBeToldApartSaysWhatToSwitchOn()
    {
        Written withoutSteps("1f1b"), withoutArrows("1f1b"), twoPipelines("1f1b"), gpipes("gpipe");
        withoutSteps.writeAll(GlooSchedule::OneForwardOneBackward, false);
        QVERIFY(withoutSteps.complaint().find("call the profiler's step()") != std::string::npos);
        withoutArrows.writeAll(GlooSchedule::OneForwardOneBackward, true, false);
        QVERIFY(withoutArrows.complaint().find("ProfilerActivity.CPU") != std::string::npos);
        QCOMPARE(withoutArrows.import().blocks, std::int64_t{0});
        // Two pipelines of four ranks: rank 4 receives as a first stage does.
        for (Written* w : {&twoPipelines, &gpipes}) {
            const GlooSchedule schedule = w == &gpipes ? GlooSchedule::GPipe : GlooSchedule::OneForwardOneBackward;
            for (int rank = 0; rank < 2 * ranks; ++rank) {
                std::string text = GlooRank(w->prediction.program, w->prediction.timeline, rank % ranks, schedule)
                                       .file(2 * ranks, 2, stepLength);
                const std::string from = R"("rank":)" + std::to_string(rank % ranks);
                text.replace(text.find(from), from.size(), R"("rank":)" + std::to_string(rank));
                w->write(rank, text);
            }
            QVERIFY(w->complaint().find("no pipeline of one stage per rank") != std::string::npos);
            QCOMPARE(w->import().blocks, std::int64_t{0});
        }
    }
};

PIPEWRIGHT_TEST(TestHostBlocks, QCoreApplication)
#include "tst_hostblocks.moc"
