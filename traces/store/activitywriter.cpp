// SPDX-License-Identifier: GPL-3.0-or-later
// Writes rows of each kind by BulkInsert, then the same slices as packed chunks per track: 32-bit durations where they
// fit. O(slices log slices).
#include "traces/store/activitystore.h"

#include "core/base/outputfile.h"
#include "traces/store/activitytables.h"
#include "traces/store/database.h"
#include "traces/store/schema.h"
#include "traces/store/tracerecovery.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

constexpr std::size_t chunkSize = 65'536;

/// A stretch of one track as the packed arrays of a row of SLICE_CHUNKS.
class ChunkWriter {
public:
    ChunkWriter(SQLite::Database& database)
        : m_insert(database, "INSERT INTO SLICE_CHUNKS VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    {
    }

    void add(const Activity& activity, std::int64_t record)
    {
        m_starts.push_back(activity.start);
        m_durations.push_back(activity.end - activity.start);
        m_names.push_back(activity.name);
        m_kinds.push_back(static_cast<std::uint8_t>(activity.kindNumber));
        m_records.push_back(static_cast<std::uint32_t>(record));
        m_correlations.push_back(activity.correlation);
        m_correlated = m_correlated || activity.correlation != 0;
    }

    bool full() const { return m_starts.size() >= chunkSize; }

    void flush(const TrackLayout::Row& row, int chunk)
    {
        if (m_starts.empty())
            return;
        m_insert.bind(1, row.lane);
        m_insert.bind(2, row.row);
        m_insert.bind(3, chunk);
        m_insert.bind(4, static_cast<std::int64_t>(m_starts.size()));
        bind(5, m_starts);
        // Nearly every duration fits into 32 bits (4.29 s); a chunk with one that does not keeps all of them in 64.
        const bool wide = std::any_of(m_durations.begin(), m_durations.end(),
                                      [](Nanoseconds d) { return d > std::numeric_limits<std::uint32_t>::max(); });
        if (!wide) {
            m_narrow.assign(m_durations.begin(), m_durations.end());
            bind(6, m_narrow);
        } else {
            bind(6, m_durations);
        }
        bind(7, m_names);
        bind(8, m_kinds);
        bind(9, m_records);
        if (m_correlated)
            bind(10, m_correlations);
        else
            m_insert.bind(10);
        m_insert.exec();
        m_insert.reset();
        m_starts.clear();
        m_durations.clear();
        m_names.clear();
        m_kinds.clear();
        m_records.clear();
        m_correlations.clear();
        m_correlated = false;
    }

private:
    template<typename Value>
    void bind(int index, const std::vector<Value>& values)
    {
        m_insert.bindNoCopy(index, values.data(), static_cast<int>(values.size() * sizeof(Value)));
    }

    SQLite::Statement m_insert;
    std::vector<Nanoseconds> m_starts, m_durations;
    std::vector<std::uint32_t> m_narrow, m_names, m_records, m_correlations;
    std::vector<std::uint8_t> m_kinds;
    bool m_correlated = false;
};

template<typename Value>
void setMeta(SQLite::Database& database, const char* name, const Value& value)
{
    SQLite::Statement insert(database, "INSERT INTO META VALUES (?1, ?2)");
    insert.bind(1, name);
    insert.bind(2, value);
    insert.exec();
}

void writeMeta(SQLite::Database& database, const TraceData& data)
{
    setMeta(database, "schemaVersion", std::int64_t{traceschema::version});
    setMeta(database, "backend", std::string("import"));
    setMeta(database, "maths", std::string());
    setMeta(database, "tool", data.tool);
    setMeta(database, "source", data.source);
    setMeta(database, "ranks", std::int64_t{data.ranks});
    setMeta(database, "utcEpochNs", data.originEpochNs);
    setMeta(database, "recordsRead", data.report.read);
    setMeta(database, "recordsKept", data.report.kept);
    setMeta(database, "droppedRecords", data.report.lost());
    setMeta(database, "complete", std::int64_t{1});
}

void writeSmallTables(SQLite::Database& database, const TraceData& data)
{
    SQLite::Statement lane(database, "INSERT INTO LANES VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)");
    for (std::size_t i = 0; i < data.lanes.size(); ++i) {
        const TraceLane& l = data.lanes[i];
        lane.bind(1, static_cast<std::int64_t>(i));
        lane.bind(2, l.kind == TraceLane::Kind::Stream ? "stream" : "thread");
        lane.bind(3, l.rank);
        lane.bind(4, l.process);
        lane.bind(5, l.thread);
        l.device < 0 ? lane.bind(6) : lane.bind(6, l.device);
        lane.bind(7, l.name);
        lane.bind(8, l.processName);
        lane.bind(9, l.sortIndex);
        lane.bind(10, l.communication ? 1 : 0);
        lane.exec();
        lane.reset();
    }
    SQLite::Statement skipped(database, "INSERT INTO SKIPPED VALUES (?, ?, ?, ?)");
    for (const auto& [reason, entry] : data.report.entries()) {
        skipped.bind(1, reason);
        skipped.bind(2, entry.count);
        skipped.bind(3, entry.lost ? 1 : entry.warning ? traceschema::warned : 0);
        skipped.bind(4, entry.example);
        skipped.exec();
        skipped.reset();
    }
    SQLite::Statement clock(database, "INSERT INTO CLOCKS VALUES (?, ?, ?, ?, ?)");
    for (const ClockOffset& c : data.clocks) {
        clock.bind(1, c.rank);
        clock.bind(2, c.offset);
        clock.bind(3, c.residual);
        clock.bind(4, c.events);
        clock.bind(5, c.method);
        clock.exec();
        clock.reset();
    }
    // Names come last, since writing slices may add some.
    SQLite::Statement name(database, "INSERT INTO StringIds VALUES (?, ?)");
    for (std::size_t i = 0; i < data.strings.size(); ++i) {
        name.bind(1, static_cast<std::int64_t>(i));
        name.bindNoCopy(2, data.strings.text(static_cast<std::uint32_t>(i)));
        name.exec();
        name.reset();
    }
}

void writeCountersAndFlows(SQLite::Database& database, const TraceData& data)
{
    if (!data.counters.empty()) {
        database.exec("CREATE TABLE COUNTERS (counterId INTEGER, rank INTEGER, deviceId INTEGER, name TEXT, start "
                      "INTEGER, value REAL)");
        SQLite::Statement insert(database, "INSERT INTO COUNTERS VALUES (?, ?, ?, ?, ?, ?)");
        for (std::size_t c = 0; c < data.counters.size(); ++c) {
            const TraceCounter& counter = data.counters[c];
            for (std::size_t i = 0; i < counter.time.size(); ++i) {
                insert.bind(1, static_cast<std::int64_t>(c));
                insert.bind(2, counter.rank);
                counter.device < 0 ? insert.bind(3) : insert.bind(3, counter.device);
                insert.bindNoCopy(4, counter.name);
                insert.bind(5, counter.time[i]);
                insert.bind(6, counter.value[i]);
                insert.exec();
                insert.reset();
            }
        }
    }
    if (!data.flows.empty()) {
        database.exec("CREATE TABLE FLOWS (startLaneId INTEGER, start INTEGER, endLaneId INTEGER, end INTEGER)");
        SQLite::Statement insert(database, "INSERT INTO FLOWS VALUES (?, ?, ?, ?)");
        for (const TraceFlow& flow : data.flows) {
            insert.bind(1, flow.fromLane);
            insert.bind(2, flow.from);
            insert.bind(3, flow.toLane);
            insert.bind(4, flow.to);
            insert.exec();
            insert.reset();
        }
    }
}

void writeBlocks(SQLite::Database& database, const RecognisedBlocks& blocks)
{
    SQLite::Statement device(database, "INSERT INTO DEVICES VALUES (?, ?, NULL)");
    for (int i = 0; i < blocks.devices; ++i) {
        device.bind(1, i);
        device.bind(2, "rank " + std::to_string(i));
        device.exec();
        device.reset();
    }
    SQLite::Statement task(database, "INSERT INTO TASKS VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (std::size_t i = 0; i < blocks.tasks.size(); ++i) {
        const Task& t = blocks.tasks[i];
        task.bind(1, static_cast<std::int64_t>(i));
        task.bind(2, std::string(traitsOf(t.kind).key));
        task.bind(3, std::string(1, letter(t.op)));
        task.bind(4, t.stage);
        task.bind(5, t.storedMicrobatch());
        task.bind(6, static_cast<int>(t.replica));
        task.bind(7, t.device);
        task.bind(8, t.storedPeer());
        task.bind(9, blocks.labels[i]);
        task.exec();
        task.reset();
    }
    SQLite::Statement record(database, "INSERT OR REPLACE INTO RECORDS VALUES (?, ?, ?, ?, ?)");
    for (const TaskRecord& r : blocks.records) {
        record.bind(1, r.step);
        record.bind(2, static_cast<std::int64_t>(r.task));
        record.bind(3, r.device);
        record.bind(4, r.start);
        record.bind(5, r.end);
        record.exec();
        record.reset();
    }
    SQLite::Statement step(database, "INSERT INTO STEPS (step, start, end) VALUES (?, ?, ?)");
    for (const StepRecord& s : blocks.steps) {
        step.bind(1, s.step);
        step.bind(2, s.start);
        step.bind(3, s.end);
        step.exec();
        step.reset();
    }
}

void writeSlices(SQLite::Database& database, const std::string& path, TraceData& data, const WorkProgress& progress)
{
    const TrackLayout layout = layOut(data);
    ActivityTables tables(database.getHandle(), path, data);
    ChunkWriter chunks(database);
    std::size_t done = 0;
    for (const TrackLayout::Row& row : layout.rows) {
        int chunk = 0;
        for (const std::uint32_t i : row.activities) {
            const Activity& activity = data.activities[i];
            chunks.add(activity, tables.add(activity));
            if (chunks.full())
                chunks.flush(row, chunk++);
            if ((++done & 0xffff) == 0)
                progress.at(static_cast<double>(done) / static_cast<double>(data.activities.size()), path);
        }
        chunks.flush(row, chunk);
    }
    tables.flush();
    data.report.kept = static_cast<std::int64_t>(done);
}

} // namespace

void writeActivities(const std::string& path, TraceData& data, const RecognisedBlocks& blocks, bool overwrite,
                     const WorkProgress& progress)
{
    if (data.activities.size() > std::numeric_limits<std::uint32_t>::max())
        throw Error(path, "more than four thousand million slices", "import a shorter part of the run");
    OutputFile file(path, overwrite, databaseCompanions());
    try {
        SQLite::Database database(file.temporary(), SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX);
        // The file is temporary until it is complete, so no journal is needed.
        database.exec("PRAGMA page_size = 32768; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
                      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536");
        database.exec("BEGIN");
        database.exec(traceschema::createTables);
        database.exec(traceschema::createLaneTables);
        database.exec(traceschema::createActivityTables);
        database.exec("PRAGMA application_id = " + std::to_string(traceschema::applicationId));
        database.exec("PRAGMA user_version = " + std::to_string(traceschema::version));
        writeSlices(database, path, data, progress);
        writeCountersAndFlows(database, data);
        writeSmallTables(database, data);
        writeBlocks(database, blocks);
        writeMeta(database, data);
        database.exec("COMMIT");
    } catch (const SQLite::Exception& error) {
        throw Error(path, std::string("cannot write the trace: ") + error.what(), writingHint);
    }
    file.keep();
}

} // namespace pipewright
