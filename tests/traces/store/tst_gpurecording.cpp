// SPDX-License-Identifier: GPL-3.0-or-later
// What a GPU's recorder saw of a run, in the tables of imported traces: written while the run goes on, read per step,
// and shown as lanes.
#include "testmain.h"
#include "traces/analysis/devicetime.h"
#include "traces/store/activitystore.h"
#include "traces/store/gpurecording.h"
#include "traces/store/kernelname.h"
#include "traces/store/query.h"
#include "traces/store/tracereader.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

class TestGpuRecording : public QObject {
    Q_OBJECT

private:
    Folder m_folder;
    Design m_design = smallDesign();
    Prediction m_prediction = predict(m_design);
    const Program& m_program = m_prediction.program;

    std::string write(const char* name, int steps = 2, const GpuShape& shape = {}) const
    {
        const std::string path = m_folder / name;
        writeGpuRecording(path, m_design, m_program, m_prediction.timeline, steps, shape);
        return path;
    }

    std::size_t blocks() const
    {
        std::size_t count = 0;
        for (TaskId id = 0; id < m_program.tasks.size(); ++id)
            count += m_program.tasks[id].kind != TaskKind::Transfer
                     && m_prediction.timeline.end[id] > m_prediction.timeline.start[id];
        return count;
    }

    static std::int64_t number(const std::string& path, const std::string& query)
    {
        return std::get<std::int64_t>(queryTrace(path, query).rows.at(0).at(0));
    }

private Q_SLOTS:
    void namesOfKernelsAreReadable()
    {
        QCOMPARE(demangled("_ZN10pipewright9layerNormEPKfPfi"),
                 std::string("pipewright::layerNorm(float const*, float*, int)"));
        QCOMPARE(demangled("sm90_xmma_gemm"), std::string("sm90_xmma_gemm"));
        QCOMPARE(demangled("i"), std::string("i")); // what would be "int" as a type
        QCOMPARE(demangled("_Znonsense"), std::string("_Znonsense"));
    }

    void recordsAreInTheTablesOfImportedTracesWithStepAndTask()
    {
        const std::string path = write("tables.db");
        QCOMPARE(number(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE step = 1"),
                 static_cast<std::int64_t>(4 * blocks()));
        // The link from a kernel to its block is a join.
        QCOMPARE(number(path, "SELECT count(DISTINCT k.taskId) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN TASKS t USING "
                              "(taskId) WHERE t.kind <> 'transfer'"),
                 static_cast<std::int64_t>(blocks()));
        QCOMPARE(number(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = "
                              "k.demangledName WHERE s.value LIKE 'pipewright::layerNorm(%'"),
                 static_cast<std::int64_t>(2 * blocks()));
        QCOMPARE(number(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
                              "USING (correlationId) WHERE r.end <= k.start"),
                 static_cast<std::int64_t>(8 * blocks()));
        QVERIFY(number(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE dstDeviceId IS NOT NULL") > 0);
        QCOMPARE(number(path, "SELECT sum(end - start) FROM PROFILER_OVERHEAD"), 10'000);
        QCOMPARE(number(path, "SELECT count(*) FROM LANES WHERE kind = 'stream' AND threadId IN (7, 8)"), 2);
    }

    void memoryThatTheGpuGaveOrTookIsKept()
    {
        const std::string path = m_folder / "memory.db";
        TraceWriter writer(path, m_design, m_program, smallHeader());
        GpuRecord record{0, none, GpuRecord::Kind::Memory, "allocate", 1};
        record.start = 5;
        record.bytes = 1 << 20;
        writer.append(std::vector<GpuRecord>{record});
        record.bytes = -(1 << 20);
        writer.append(std::vector<GpuRecord>{record});
        writer.commit();
        QCOMPARE(number(path, "SELECT count(*) FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE deviceId = 1"), 2);
        QCOMPARE(number(path, "SELECT sum(bytes) FROM CUDA_GPU_MEMORY_USAGE_EVENTS"), 0);
    }

    /// As timed runs write them: of no GPU.
    void partsOfAPairStandOnTheStreamOfTheirDevice()
    {
        const std::string path = m_folder / "parts.db";
        TraceWriter writer(path, m_design, m_program, smallHeader());
        GpuRecord part{0, 0, GpuRecord::Kind::Part, "dispatch"};
        part.stream = static_cast<std::int32_t>(PartStream::Communication);
        part.toDevice = 1;
        part.end = 9;
        writer.append(std::vector<GpuRecord>{part});
        writer.commit();
        QCOMPARE(number(path, "SELECT count(*) FROM LANES WHERE name = 'communication' AND processName = 'device 1' "
                              "AND taskDeviceId = 1"),
                 1);
    }

    void whatRanInAStepIsReadWithItsBlockAndItsLaunch()
    {
        const TraceReader reader(write("work.db"));
        QVERIFY(reader.holdsGpuWork());
        const GpuWork work = reader.gpuWork(m_program, 1);
        QCOMPARE(work.overhead, 5'000);
        QCOMPARE(work.overheads, 1);
        std::size_t kernels = 0;
        for (const GpuWork::Slice& slice : work.slices) {
            QVERIFY(slice.task != none);
            const Task& task = m_program.tasks[slice.task];
            QCOMPARE(slice.device, task.device);
            QVERIFY(slice.start >= m_prediction.timeline.start[slice.task]);
            QVERIFY(slice.end <= m_prediction.timeline.end[slice.task]);
            if (slice.kind != ActivityKind::Kernel)
                continue;
            ++kernels;
            QVERIFY(slice.launched != GpuWork::unknown);
            QVERIFY(slice.launched <= slice.start);
        }
        QCOMPARE(kernels, 4 * blocks());
        QVERIFY(std::is_sorted(work.slices.begin(), work.slices.end(),
                               [](const auto& a, const auto& b) { return a.start < b.start; }));
    }

    void aBlocksTimeIsThatOfItsEventsOrOfItsKernels()
    {
        const std::string path = write("by.db");
        const TraceReader events(path), kernels(path, BlockTime::Kernels);
        const Timeline outer = events.timeline(m_program, 1), inner = kernels.timeline(m_program, 1);
        for (TaskId id = 0; id < m_program.tasks.size(); ++id) {
            QCOMPARE(outer.start[id], m_prediction.timeline.start[id]);
            const Nanoseconds length = outer.end[id] - outer.start[id];
            if (m_program.tasks[id].kind == TaskKind::Transfer) { // the link's time stays
                QCOMPARE(inner.end[id], outer.end[id]);
                continue;
            }
            QCOMPARE(inner.start[id], outer.start[id] + length * 50 / 1000);
            QCOMPARE(inner.end[id], outer.start[id] + length * 710 / 1000 + length * 200 / 1000);
        }
    }

    void withoutKernelsTheirTimesAreRefused()
    {
        const std::string path = m_folder / "none.db";
        {
            TraceWriter writer(path, m_design, m_program, smallHeader());
            writer.append(recordsOf(m_program, m_prediction.timeline, 0, 0));
            writer.append(StepRecord{0, 0, 10, 0});
            writer.commit();
        }
        const TraceReader events(path);
        QVERIFY(!events.holdsGpuWork());
        QVERIFY(events.gpuWork(m_program, 0).empty());
        const std::string refusal = errorOf([&] { TraceReader(path, BlockTime::Kernels); });
        QVERIFY(refusal.find("holds no kernels") != std::string::npos);
        QVERIFY(refusal.find("take the times of events") != std::string::npos);
    }

    void aRunIsShownWithItsBlocksAboveTheStreamsTheyUse()
    {
        const std::string path = write("lanes.db");
        QVERIFY(!holdsActivities(path)); // it opens with its design, and is shown as lanes beside it
        const StoredActivities stored = readActivities(path);
        QCOMPARE(stored.deviceNames.size(), std::size_t{2});
        for (int device = 0; device < 2; ++device) {
            std::vector<std::pair<std::int64_t, std::string>> lanes;
            for (const Track& track : stored.tracks)
                if (const TraceLane& lane = stored.lanes[track.lane];
                    lane.kind == TraceLane::Kind::Stream && lane.device == device)
                    lanes.emplace_back(lane.sortIndex, lane.name);
            std::sort(lanes.begin(), lanes.end());
            QVERIFY(lanes.size() >= 3);
            QCOMPARE(lanes.front().second, std::string("blocks"));
        }
        // Blocks are named as in the design, and every kernel lies under the block it is of.
        std::size_t inside = 0;
        for (const Track& blocks : stored.tracks)
            for (const Track& kernels : stored.tracks) {
                const TraceLane &above = stored.lanes[blocks.lane], &below = stored.lanes[kernels.lane];
                if (above.name != "blocks" || below.device != above.device || below.thread < 7 || below.thread > 8)
                    continue;
                for (std::size_t i = 0; i < kernels.size(); ++i)
                    for (std::size_t b = 0; b < blocks.size(); ++b)
                        inside += blocks.start[b] <= kernels.start[i] && kernels.end[i] <= blocks.end[b];
            }
        QCOMPARE(inside, 8 * blocks());
        QCOMPARE(stepsOf(stored).size(), std::size_t{2});
        QCOMPARE(stepsOf(stored)[1].name, std::string("step 1"));
        // The devices' time by cause counts kernels, as of an imported trace.
        const DeviceTimes times = deviceTimes(stored, LaunchCalls(stored), 0, endOf(stored));
        QCOMPARE(times.devices.size(), std::size_t{2});
        QCOMPARE(times.devices[1].name, std::string("GPU 1 (made up), device 1"));
        QVERIFY(times.devices[0].of(DeviceTimeCause::Computing) > 0);
    }

    void aRunWithoutKernelsIsShownToo()
    {
        const std::string path = m_folder / "host.db";
        {
            TraceWriter writer(path, m_design, m_program, smallHeader());
            writer.append(recordsOf(m_program, m_prediction.timeline, 0, 5'000));
            writer.append(std::vector<MemoryRecord>{{0, 0, 5'000, 100}, {0, 0, 6'000, 300}});
            writer.append(StepRecord{0, 5'000, 5'000 + m_prediction.metrics.makespan, 0});
            writer.commit();
        }
        const StoredActivities stored = readActivities(path);
        QCOMPARE(endOf(stored), m_prediction.metrics.makespan); // counted from the step
        QCOMPARE(stored.counters.size(), std::size_t{1});
        QCOMPARE(stored.counters[0].value, (std::vector<double>{100, 300}));
    }

    void slicesOfOneGpuHaveLanesOfTheirOwn()
    {
        const std::string path = write("slices.db", 1, {.oneGpu = true});
        const TraceReader reader(path);
        for (const GpuWork::Slice& slice : reader.gpuWork(m_program, 0).slices) {
            QCOMPARE(slice.gpu, 0);
            QCOMPARE(slice.device, m_program.tasks[slice.task].device);
        }
    }

    void aDamagedRecordIsRefused()
    {
        const std::string path = write("damaged.db", 1);
        {
            SQLite::Database database(path, SQLite::OPEN_READWRITE);
            database.exec("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET laneId = 999 WHERE rowid = 3");
        }
        QVERIFY(errorOf([&] { readActivities(path); }).find("damaged") != std::string::npos);
        QVERIFY(errorOf([&] { TraceReader(path).gpuWork(m_program, 0); }).find("damaged") != std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestGpuRecording, QCoreApplication)
#include "tst_gpurecording.moc"
