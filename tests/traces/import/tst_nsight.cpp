// SPDX-License-Identifier: GPL-3.0-or-later
// Exports of Nsight Systems, made up table by table: every trap that their schema has, one at a time.
#include "testmain.h"
#include "traces/import/nsight.h"
#include "traces/import/recognisedblocks.h"
#include "traces/import/traceimport.h"
#include "traces/store/activitystore.h"
#include "traces/store/recording.h"
#include "traces/store/tracereader.h"

#include <QTest>
#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <fstream>

using namespace pipewright;
using namespace pipewright::test;

class TestNsight : public QObject {
    Q_OBJECT

private:
    Folder m_folder;
    int m_files = 0;

    static std::int64_t global(std::int64_t process, std::int64_t thread)
    {
        return (std::int64_t{1} << 48) | (process << 24) | thread;
    }

    std::string write(const std::vector<std::string>& statements)
    {
        const std::string path = m_folder / ("export" + std::to_string(++m_files) + ".sqlite").c_str();
        SQLite::Database database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
        database.exec("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)");
        database.exec("INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel'), (3, 'PP:0F0'), (4, "
                      "'ncclDevKernel_SendRecv'), "
                      "(5, 'ncclSend'), (6, 'cudaGraphLaunch'), (7, 'main')");
        for (const std::string& statement : statements)
            database.exec(statement);
        return path;
    }

    static std::string text(std::int64_t number) { return std::to_string(number); }

    static const char* kernels()
    {
        return "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, correlationId "
               "INT, globalPid INT, "
               "demangledName INT, shortName INT, graphNodeId INT)";
    }
    static const char* calls()
    {
        return "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT, "
               "correlationId INT, nameId INT)";
    }
    static const char* ranges()
    {
        return "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT, textId INT, "
               "domainId INT, binaryData BLOB)";
    }

    static std::vector<const Activity*> named(const TraceData& data, const std::string& name)
    {
        std::vector<const Activity*> found;
        for (const Activity& activity : data.activities)
            if (data.strings.text(activity.name) == name)
                found.push_back(&activity);
        return found;
    }

    static bool says(const TraceData& data, const std::string& reason)
    {
        for (const auto& [name, entry] : data.report.entries())
            if (name.find(reason) != std::string::npos)
                return true;
        return false;
    }

private Q_SLOTS:
    void tablesThatAreNotThereAreNotMissed()
    {
        const TraceData data = importNsight(
            write({kernels(), "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 1, 7, 5, 0, 1, 1, NULL)"}));
        QCOMPARE(data.activities.size(), std::size_t{1});
        QCOMPARE(data.lanes[0].name, std::string("stream 7"));
        QCOMPARE(data.lanes[0].device, 1);
        QCOMPARE(data.report.lost(), std::int64_t{0});
    }

    void tablesWithTheirVersionInTheirNameAreRead()
    {
        // The names of a zero-bubble runtime: all 36 ranges of either rank are blocks.
        std::vector<std::string> statements{kernels(), calls(), ranges(), "BEGIN"};
        statements[2].insert(statements[2].find(" ("), "_V2");
        std::int64_t clock = 1'000'000, correlation = 0;
        for (int rank = 0; rank < 2; ++rank)
            for (int microbatch = 0; microbatch < 6; ++microbatch)
                for (const char* const block : {"F%1.0.0", "F%1.1.0", "B%1.1.0", "B%1.0.0", "W%1.1.0", "W%1.0.0"}) {
                    const std::string name = QString::fromUtf8(block).arg(microbatch).toStdString(),
                                      thread = text(global(11 + rank, 12)), number = text(++correlation);
                    statements.push_back("INSERT INTO NVTX_EVENTS_V2 VALUES (" + text(clock) + ", "
                                         + text(clock + 50'000) + ", 59, '" + name + "', " + thread
                                         + ", NULL, 0, NULL)");
                    statements.push_back("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + text(clock + 10'000)
                                         + ", " + text(clock + 20'000) + ", 0, " + thread + ", " + number + ", 2)");
                    statements.push_back("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + text(clock + 30'000) + ", "
                                         + text(clock + 1'030'000) + ", " + text(rank) + ", 7, " + number + ", "
                                         + text(global(11 + rank, 0)) + ", 1, 1, NULL)");
                    clock += 1'100'000;
                }
        statements.emplace_back("COMMIT");
        const std::string path = write(statements), store = m_folder / "versions.db";
        QCOMPARE(importTraces({path}, store, true).blocks, std::int64_t{72});
        QCOMPARE(importNsight(path).activities.size(), std::size_t{3 * 72});
        QVERIFY(!says(importNsight(path), "not read"));
    }

    void tablesOfEventsThatAreNotReadAreNamedWithTheirTime()
    {
        const std::string graphs = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, graphId INT)",
                          rows = "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0, 3000, 1), (4000, 4500, 1)";
        const std::string kernel = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 1, 7, 5, 0, 1, 1, NULL)";
        const TraceData data = importNsight(write({kernels(), kernel, graphs, rows, "CREATE TABLE OTHER (start INT)"}));
        QVERIFY(says(data, "tables of events that are not read: CUPTI_ACTIVITY_KIND_GRAPH_TRACE (2 rows, 3.5 us)"));
        QVERIFY(!says(importNsight(write({kernels(), kernel, graphs})), "not read")); // an empty one is none
        const std::string error = errorOf([&] { importNsight(write({graphs, rows})); });
        QVERIFY2(error.find("no event that is read, but CUPTI_ACTIVITY_KIND_GRAPH_TRACE") != std::string::npos,
                 error.c_str());
    }

    void columnsMayBeMissingOrNamedDifferently()
    {
        const TraceData data =
            importNsight(write({"CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)",
                                "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '2.11.0')",
                                "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT)",
                                "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000)",
                                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (end INT, start INT, mangledName INT)",
                                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 10, 1)"}));
        QCOMPARE(named(data, "gemm").size(), std::size_t{1});
        QCOMPARE(named(data, "gemm")[0]->end, Nanoseconds{20});
        QCOMPARE(data.originEpochNs, std::int64_t{1700000000000000000});
        QVERIFY(data.tool.find("2.11.0") != std::string::npos);
    }

    void correlationCountsPerProcess()
    {
        const TraceData data = importNsight(
            write({kernels(), calls(),
                   "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 5, " + text(global(11, 0))
                       + ", 1, 1, NULL), (300, 400, 1, 7, 5, " + text(global(22, 0)) + ", 1, 1, NULL)",
                   "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 0, " + text(global(11, 12))
                       + ", 5, 2), (30, 40, 0, " + text(global(22, 23)) + ", 5, 2)"}));
        const auto launches = named(data, "cudaLaunchKernel"), gemms = named(data, "gemm");
        QCOMPARE(gemms[0]->correlation, launches[0]->correlation);
        QCOMPARE(gemms[1]->correlation, launches[1]->correlation);
        QVERIFY(gemms[0]->correlation != gemms[1]->correlation);
        // Two processes are two ranks, in the order of their devices.
        QCOMPARE(data.lanes[gemms[0]->lane].rank, 0);
        QCOMPARE(data.lanes[gemms[1]->lane].rank, 1);
        QCOMPARE(data.lanes[launches[1]->lane].rank, 1);
    }

    void kernelsOfAGraphShareTheirLaunch()
    {
        const TraceData data = importNsight(
            write({kernels(), calls(), ranges(),
                   "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 9, " + text(global(11, 0))
                       + ", 1, 1, 4294967297), (200, 350, 0, 7, 9, " + text(global(11, 0)) + ", 1, 1, 4294967298)",
                   "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 0, " + text(global(11, 12)) + ", 9, 6)",
                   "INSERT INTO NVTX_EVENTS VALUES (5, 30, 59, NULL, " + text(global(11, 12)) + ", 3, 0, NULL)"}));
        const auto gemms = named(data, "gemm");
        QCOMPARE(gemms[0]->correlation, gemms[1]->correlation);
        QVERIFY(data.details[gemms[0]->detail].graphNode != data.details[gemms[1]->detail].graphNode);
        TraceData copy = importNsight(m_folder / ("export" + std::to_string(m_files) + ".sqlite").c_str());
        const RecognisedBlocks blocks = recogniseBlocks(copy); // the block is both kernels
        QCOMPARE(blocks.records.size(), std::size_t{1});
        QCOMPARE(blocks.records[0].start, Nanoseconds{100});
        QCOMPARE(blocks.records[0].end, Nanoseconds{350});
    }

    void aBlockIsWhatWasLaunchedInsideItsRange()
    {
        // The kernel of the next block starts before this range's last one ends; only launches tell them apart.
        TraceData data = importNsight(
            write({kernels(), calls(), ranges(),
                   "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1100, 0, 7, 1, " + text(global(1, 0))
                       + ", 1, 1, NULL), (1100, 1300, 0, 7, 2, " + text(global(1, 0)) + ", 1, 1, NULL)",
                   "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 12, 0, " + text(global(1, 2))
                       + ", 1, 2), (50, 52, 0, " + text(global(1, 2)) + ", 2, 2)",
                   "INSERT INTO NVTX_EVENTS VALUES (5, 20, 59, 'F0.0', " + text(global(1, 2))
                       + ", NULL, 0, NULL), (45, 60, 59, 'F0.1', " + text(global(1, 2)) + ", NULL, 0, NULL)"}));
        const RecognisedBlocks blocks = recogniseBlocks(data);
        QCOMPARE(blocks.labels, (std::vector<std::string>{"F0.0", "F0.1"}));
        QCOMPARE(blocks.records[0].end, Nanoseconds{1100});
        QCOMPARE(blocks.records[1].start, Nanoseconds{1100});
    }

    /// Two ranks of Megatron with the ranges of resources/examples/megatron_nvtx.py inside its own ones, two steps:
    /// backwards are launched by autograd's thread, and the kernels run behind the ranges.
    void megatronsBlocksAreThoseOfThePatchsRanges()
    {
        const Design design = smallDesign();
        const Prediction prediction = predict(design);
        const Nanoseconds stepLength = 2 * prediction.metrics.makespan, late = 10'000'000;
        std::vector<std::string> statements{kernels(), calls(), ranges()};
        int correlation = 0;
        for (int step = 0; step < 2; ++step) {
            for (const int rank : {0, 1})
                statements.push_back("INSERT INTO NVTX_EVENTS VALUES (" + text(step * stepLength) + ", "
                                     + text((step + 1) * stepLength - 1)
                                     + ", 59, 'megatron.core.pipeline_parallel.schedules.forward_backward_pipelining_"
                                       "without_interleaving.steady', "
                                     + text(global(rank + 1, 2)) + ", NULL, 0, NULL)");
            for (TaskId id = 0; id < prediction.program.tasks.size(); ++id) {
                const Task& task = prediction.program.tasks[id];
                if (task.kind != TaskKind::Compute)
                    continue;
                const Nanoseconds from = step * stepLength + prediction.timeline.start[id],
                                  to = step * stepLength + prediction.timeline.end[id];
                const std::int64_t process = task.device + 1;
                const std::string which = text(++correlation), call = text(from + 10);
                statements.push_back("INSERT INTO NVTX_EVENTS VALUES (" + text(from) + ", " + text(from + 50)
                                     + ", 59, '" + toString(task.block()) + "', " + text(global(process, 2))
                                     + ", NULL, 0, NULL)");
                statements.push_back("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + call + ", " + text(from + 20)
                                     + ", 0, " + text(global(process, task.op == Op::F ? 2 : 3)) + ", " + which
                                     + ", 2)");
                statements.push_back("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + text(from + late) + ", "
                                     + text(to + late) + ", 0, 7, " + which + ", " + text(global(process, 0))
                                     + ", 1, 1, NULL)");
            }
        }
        const std::string store = m_folder / "megatron.db";
        const ImportedTrace imported = importTraces({write(statements)}, store, true);
        QCOMPARE(imported.ranks, 2);
        QCOMPARE(imported.steps, std::int64_t{2});
        const TraceReader trace(store);
        const Timeline timeline = trace.timeline(prediction.program, 1);
        for (TaskId id = 0; id < prediction.program.tasks.size(); ++id)
            if (prediction.program.tasks[id].kind == TaskKind::Compute) {
                QCOMPARE(timeline.end[id] - timeline.start[id],
                         prediction.timeline.end[id] - prediction.timeline.start[id]);
                QCOMPARE(timeline.start[id], prediction.timeline.start[id]);
            }
    }

    void megatronsOwnRangesAreNoBlocks()
    {
        TraceData data = importNsight(write(
            {kernels(), ranges(),
             "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 5, " + text(global(1, 0)) + ", 1, 1, NULL)",
             "INSERT INTO NVTX_EVENTS VALUES (5, 30, 59, 'megatron.core.pipeline_parallel.schedules.forward_backward_"
             "pipelining_with_interleaving.warmup', "
                 + text(global(1, 2)) + ", NULL, 0, NULL)"}));
        QVERIFY(recogniseBlocks(data).records.empty());
        QVERIFY(says(data, "Megatron's own ranges do not say"));
        const std::string store = m_folder / "unnamed.db";
        importTraces({m_folder / ("export" + std::to_string(m_files) + ".sqlite").c_str()}, store, true);
        const std::string refused = errorOf([&] { TraceReader(store).medianStep(); });
        QVERIFY2(refused.find("megatron_nvtx.py") != std::string::npos, refused.c_str());
    }

    void rangesMayBeginBeforeTheRecordingAndNeverEnd()
    {
        const TraceData data =
            importNsight(write({kernels(), ranges(),
                                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 500, 0, 7, 1, 0, 1, 1, NULL), (0, "
                                "0, 0, 7, 2, 0, 1, 1, NULL), "
                                "(60, 50, 0, 7, 3, 0, 1, 1, NULL), (NULL, 50, 0, 7, 3, 0, 1, 1, NULL)",
                                "INSERT INTO NVTX_EVENTS VALUES (-100, 40, 59, 'early', 1, NULL, 0, NULL), (-100, -40, "
                                "59, 'gone', 1, NULL, 0, NULL), "
                                "(100, NULL, 59, 'open', 1, NULL, 0, NULL), (120, NULL, 34, 'mark', 1, NULL, 0, NULL), "
                                "(130, NULL, 33, 'category', 1, NULL, 0, NULL), "
                                "(1, 2, 70, 'old', 1, NULL, 0, NULL), (140, 150, 60, 'crossing', 1, NULL, 0, NULL)"}));
        QCOMPARE(named(data, "gemm").size(), std::size_t{1});
        QVERIFY(says(data, "gave no time") && says(data, "end before they begin") && says(data, "without a start"));
        QCOMPARE(named(data, "early")[0]->start, Nanoseconds{0});
        QVERIFY(named(data, "gone").empty() && says(data, "from before the recording"));
        QCOMPARE(named(data, "open")[0]->end, Nanoseconds{500});
        QVERIFY(named(data, "mark")[0]->kind() == ActivityKind::Mark);
        QVERIFY(named(data, "category").empty());
        QCOMPARE(named(data, "old").size(), std::size_t{1});
        QCOMPARE(data.report.lost(), std::int64_t{4});
    }

    void ncclSaysSizeAndPeerInAPayload_data()
    {
        QTest::addColumn<bool>("described");
        QTest::addColumn<bool>("otherHeader");
        QTest::newRow("with domain and schema numbers of 32 bits") << true << false;
        QTest::newRow("with a header of four numbers of 64 bits") << true << true;
        QTest::newRow("of a schema that is not described") << false << false;
    }

    void ncclSaysSizeAndPeerInAPayload()
    {
        QFETCH(bool, described);
        QFETCH(bool, otherHeader);
        std::string payload(32 + 24, '\0');
        const auto put = [&](std::size_t at, auto value) { std::memcpy(payload.data() + at, &value, sizeof value); };
        put(0, std::uint64_t{1});
        put(8, std::uint64_t{42});
        put(16, std::uint64_t{24});
        put(24, otherHeader ? std::uint64_t{32} : std::uint64_t{56});
        put(32, std::uint64_t{0xabcdef});
        put(40, std::uint64_t{1 << 20});
        put(48, std::int32_t{3});
        std::string hex = "x'";
        for (const char c : payload) {
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            hex += digits;
        }
        hex += "'";
        const std::string thread = text(global(1, 2));
        const TraceData data =
            importNsight(write({kernels(), calls(), ranges(),
                                "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, flags "
                                "INT, type INT, name TEXT, offset INT)",
                                "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, " + text(described ? 42 : 43)
                                    + ", 0, 0, 18, 'NCCL communicator ID', NULL), (1, 42, 1, 0, 22, 'Message size "
                                      "[bytes]', 8), (1, 42, 2, 0, 15, 'Peer rank', 16)",
                                described ? "SELECT 1" : "DELETE FROM NVTX_PAYLOAD_SCHEMA_ENTRIES WHERE schemaId = 42",
                                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1100, 0, 7, 1, "
                                    + text(global(1, 0)) + ", 4, 4, NULL)",
                                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 12, 0, " + thread + ", 1, 2)",
                                "INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, 'NCCL', " + thread
                                    + ", NULL, 1, NULL), (5, 20, 59, NULL, " + thread + ", 5, 1, " + hex + ")"}));
        const ActivityDetail& kernel = data.details[named(data, "ncclDevKernel_SendRecv")[0]->detail];
        if (!described) {
            QVERIFY(says(data, "payload is not described"));
            QCOMPARE(kernel.peer, -1);
            return;
        }
        QCOMPARE(data.strings.text(kernel.collective), std::string("send"));
        QCOMPARE(kernel.peer, 3);
        QCOMPARE(kernel.bytes, Bytes{1 << 20});
        QCOMPARE(kernel.communicator, std::uint64_t{0xabcdef});
        QVERIFY(data.lanes[named(data, "ncclDevKernel_SendRecv")[0]->lane].communication);
    }

    void namesCountersAndAllocationsAreTakenOver()
    {
        const TraceData data = importNsight(write(
            {kernels(),
             "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 500, 0, 7, 1, " + text(global(1, 0))
                 + ", 99, 99, NULL)",
             "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, correlationId "
             "INT, globalPid INT, bytes INT, copyKind INT)",
             "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (600, 700, 0, 8, 2, " + text(global(1, 0)) + ", 4096, 10)",
             "CREATE TABLE ThreadNames (nameId INT, priority INT, globalTid INT)",
             "INSERT INTO ThreadNames VALUES (7, 1, " + text(global(1, 2)) + ")", ranges(),
             "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'r', " + text(global(1, 2)) + ", NULL, 0, NULL)",
             "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, metricId INT, metricName TEXT)",
             "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (256, 4, 'SM Active')",
             "CREATE TABLE GPU_METRICS (timestamp INT, typeId INT, metricId INT, value INT)",
             "INSERT INTO GPU_METRICS VALUES (100, 256, 4, 55), (NULL, 256, 4, 1)",
             "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, globalPid INT, deviceId INT, bytes INT, "
             "memoryOperationType INT)",
             "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (50, 1, 0, 100, 0), (60, 1, 0, 40, 1)"}));
        QVERIFY(says(data, "table of strings does not have"));
        QCOMPARE(named(data, "peer to peer").size(), std::size_t{1});
        QCOMPARE(data.lanes[named(data, "r")[0]->lane].name, std::string("thread 2 (main)"));
        QCOMPARE(data.counters.size(), std::size_t{2});
        QCOMPARE(data.counters[0].name, std::string("SM Active"));
        QCOMPARE(data.counters[1].value, (std::vector<double>{100, 60}));
        QCOMPARE(data.report.lost(), std::int64_t{1});
    }

    void ncclCountsPeersWithinACommunicator()
    {
        // Processes 11, 22 and 33 are ranks 0, 1 and 2 of the job; the last two share a communicator, in which they are
        // 0 and 1.
        const auto payload = [](std::uint64_t schema, std::uint64_t communicator, std::int32_t first,
                                std::int32_t second) {
            std::string hex = "x'";
            const auto put = [&](auto value) {
                for (std::size_t i = 0; i < sizeof value; ++i) {
                    char digits[3];
                    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>((value >> (8 * i)) & 0xff));
                    hex += digits;
                }
            };
            for (const std::uint64_t head :
                 {std::uint64_t{1}, schema, std::uint64_t{16}, std::uint64_t{32}, communicator})
                put(head);
            put(static_cast<std::uint32_t>(first));
            put(static_cast<std::uint32_t>(second));
            return hex + "'";
        };
        std::vector<std::string> statements{kernels(),
                                            calls(),
                                            ranges(),
                                            "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx "
                                            "INT, flags INT, type INT, name TEXT, offset INT)",
                                            "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 1, 0, 0, 18, 'NCCL "
                                            "communicator ID', NULL), (1, 1, 1, 0, 15, 'No. of ranks', 8), "
                                            "(1, 1, 2, 0, 15, 'Rank', 12), (1, 2, 0, 0, 18, 'NCCL communicator ID', "
                                            "NULL), (1, 2, 1, 0, 15, 'Peer rank', 8)",
                                            "INSERT INTO StringIds VALUES (20, 'ncclCommInitRank'), (21, 'ncclRecv')"};
        const auto range = [&](int process, int name, int at, const std::string& data) {
            statements.push_back("INSERT INTO NVTX_EVENTS VALUES (" + text(at) + ", " + text(at + 8) + ", 59, NULL, "
                                 + text(global(process, 1)) + ", " + text(name) + ", 1, " + data + ")");
        };
        for (int rank = 0; rank < 3; ++rank)
            range(11 * (rank + 1), 20, 0, payload(1, 0xaa, 3, rank));
        for (int rank = 0; rank < 2; ++rank) {
            const int process = 22 + 11 * rank;
            range(process, 20, 10, payload(1, 0xbb, 2, rank));
            range(process, rank == 0 ? 5 : 21, 20, payload(2, 0xbb, 1 - rank, 0));
            statements.push_back("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (22, 24, 0, "
                                 + text(global(process, 1)) + ", 1, 2)");
            statements.push_back("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + text(100 + 50 * rank) + ", 400, "
                                 + text(rank + 1) + ", 7, 1, " + text(global(process, 0)) + ", 4, 4, NULL)");
        }
        TraceData data = importNsight(write(statements));
        for (const Activity* kernel : named(data, "ncclDevKernel_SendRecv"))
            QCOMPARE(data.details[kernel->detail].peer, data.lanes[kernel->lane].rank == 1 ? 2 : 1);
        const std::string path = m_folder / "peers.db";
        writeActivities(path, data, {}, true);
        const LinkTransfers transfers = readActivities(path).transfers; // the calls of the hosts are no transfers
        QCOMPARE(transfers.transfers.size(), std::size_t{1});
        QCOMPARE(transfers.links[0].what, std::string("the link from rank 1 to rank 2"));
        QCOMPARE(transfers.transfers[0].ready, Nanoseconds{150});
        QCOMPARE(transfers.transfers[0].time(), Nanoseconds{250});
    }

    void whatIsNoExportIsSaidToBeNone()
    {
        const std::string other = m_folder / "other.db", words = m_folder / "words.db";
        SQLite::Database(other, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE T (a)");
        QVERIFY(errorOf([&] { importNsight(other); }).find("no export of Nsight") != std::string::npos);
        std::ofstream(words) << std::string(4096, 'x');
        QVERIFY(errorOf([&] { importNsight(words); }).find("cannot be read") != std::string::npos);
        QVERIFY(errorOf([&] { importNsight(write({})); }).find("no event") != std::string::npos);
        const std::string cut =
            write({kernels(), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
                              "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i, i + 1, 0, 7, i, 0, 1, 1, NULL FROM n"});
        QCOMPARE(importNsight(cut).activities.size(), std::size_t{5000});
        std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
        QVERIFY(!errorOf([&] { importNsight(cut); }).empty());
    }
};

PIPEWRIGHT_TEST(TestNsight, QCoreApplication)
#include "tst_nsight.moc"
