// SPDX-License-Identifier: GPL-3.0-or-later
// Appends records in batches sorted by key within one transaction each; SQLite in WAL mode keeps committed batches
// through a crash. O(records log batch).
#include "traces/store/tracewriter.h"

#include "core/base/diagnostic.h"
#include "core/base/outputfile.h"
#include "core/files/designfile.h"
#include "traces/store/bulkinsert.h"
#include "traces/store/database.h"
#include "traces/store/gputables.h"
#include "traces/store/schema.h"
#include "traces/store/tracerecovery.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace pipewright {

namespace {

[[noreturn]] void rethrow(const std::string& path, const SQLite::Exception& error, const std::string& held = {})
{
    throw Error(path, std::string("cannot write the trace: ") + error.what() + held, writingHint);
}

std::string stepsText(std::int64_t steps)
{
    return std::to_string(steps) + (steps == 1 ? " step" : " steps");
}

} // namespace

struct TraceWriter::Private {
    Private(const std::string& path, const Design& design, const Program& program, const TraceHeader& header,
            bool overwrite)
        : m_path(path), m_file(path, overwrite, databaseCompanions())
    {
        openDatabase(m_file.temporary());
        // The file is temporary until the first commit, so no journal is needed.
        m_database->exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
        m_database->exec("BEGIN");
        m_database->exec(traceschema::createTables);
        m_database->exec("PRAGMA application_id = " + std::to_string(traceschema::applicationId));
        m_database->exec("PRAGMA user_version = " + std::to_string(traceschema::version));
        setMeta("schemaVersion", std::int64_t{traceschema::version});
        setMeta("backend", header.backend);
        setMeta("maths", header.maths);
        setMeta("utcEpochNs", header.wallClockNs);
        setMeta("complete", std::int64_t{0});
        setMeta("droppedRecords", std::int64_t{0});
        setMeta("design", designToJson(design));
        writeDevices(program, header);
        writeDictionary(program);
        m_database->exec("COMMIT");
    }

    void openDatabase(const std::string& path)
    {
        m_database.emplace(path, SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX, busyTimeoutMs);
    }

    /// Renames the finished header to the trace's name, once. The database is closed meanwhile, as its log carries its
    /// name.
    void publish()
    {
        if (m_published)
            return;
        m_database.reset();
        m_file.keep();
        m_named = true;
        openDatabase(m_file.target());
        m_database->exec("PRAGMA journal_mode = WAL");
        m_database->exec("PRAGMA synchronous = NORMAL");
        m_insertRecord.emplace(m_database->getHandle(), m_path, "INSERT OR REPLACE INTO RECORDS", std::size_t{5});
        m_insertMemory.emplace(*m_database, "INSERT INTO MEMORY VALUES (?1, ?2, ?3, ?4)");
        m_insertStep.emplace(*m_database, "INSERT OR REPLACE INTO STEPS VALUES (?1, ?2, ?3, ?4, ?5)");
        m_published = true;
    }

    template<typename Value>
    void setMeta(const char* name, const Value& value)
    {
        SQLite::Statement insert(*m_database, "INSERT OR REPLACE INTO META VALUES (?1, ?2)");
        insert.bind(1, name);
        insert.bind(2, value);
        insert.exec();
    }

    void writeDevices(const Program& program, const TraceHeader& header)
    {
        SQLite::Statement insert(*m_database, "INSERT INTO DEVICES VALUES (?1, ?2, NULL)");
        for (std::size_t device = 0; device < program.devices.size(); ++device) {
            insert.bind(1, static_cast<std::int64_t>(device));
            insert.bind(2, device < header.deviceNames.size() ? header.deviceNames[device]
                                                              : "device " + std::to_string(device));
            insert.exec();
            insert.reset();
        }
    }

    void writeDictionary(const Program& program)
    {
        SQLite::Statement insert(*m_database, "INSERT INTO TASKS VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
        for (TaskId id = 0; id < program.tasks.size(); ++id) {
            const Task& task = program.tasks[id];
            m_deviceOfTask.push_back(task.device);
            insert.bind(1, static_cast<std::int64_t>(id));
            insert.bind(2, std::string(traitsOf(task.kind).key));
            insert.bind(3, std::string(1, letter(task.op)));
            insert.bind(4, task.stage);
            insert.bind(5, task.storedMicrobatch());
            insert.bind(6, static_cast<int>(task.replica));
            insert.bind(7, task.device);
            insert.bind(8, task.storedPeer());
            insert.bind(9, program.label(id));
            insert.exec();
            insert.reset();
        }
    }

    void begin()
    {
        if (m_open)
            return;
        publish();
        m_database->exec("BEGIN");
        m_open = true;
    }

    void commit()
    {
        if (!m_open)
            return;
        m_database->exec("COMMIT");
        m_open = false;
        m_committedSteps = m_steps;
    }

    void check() const
    {
        if (m_named && !m_file.stillThere())
            throw Error(m_path,
                        "the trace was removed, moved or replaced while it was written: "
                            + (m_committedSteps == 0 ? std::string("nothing of the run is recorded")
                                                     : "its " + stepsText(m_committedSteps) + " are gone too"),
                        "leave the trace in its place until the run has ended");
    }

    /// Before an error is reported. For a removed file SQLite says that it cannot be opened, or read.
    void giveUp()
    {
        m_failed = true;
        check();
    }

    [[noreturn]] void fail(const SQLite::Exception& error)
    {
        giveUp();
        rethrow(m_path, error,
                m_committedSteps == 0 ? "; it holds no step" : "; it holds its first " + stepsText(m_committedSteps));
    }

    static constexpr int busyTimeoutMs = 10'000; ///< a reader's checkpoint may hold the file for a moment

    std::string m_path;
    OutputFile m_file; ///< closed after the database
    std::optional<SQLite::Database> m_database;
    std::optional<BulkInsert> m_insertRecord;
    std::optional<SQLite::Statement> m_insertMemory, m_insertStep;
    std::vector<int> m_deviceOfTask;
    std::optional<GpuTables> m_gpu;
    std::vector<TaskRecord> m_sorted; ///< kept between batches, so that appending allocates nothing
    std::int64_t m_steps = 0, m_committedSteps = 0;
    bool m_open = false, m_published = false;
    bool m_named = false;  ///< it has the trace's name
    bool m_failed = false; ///< what is open is then rolled back, not committed
};

TraceWriter::TraceWriter(const std::string& path, const Design& design, const Program& program,
                         const TraceHeader& header, bool overwrite)
try : d(std::make_unique<Private>(path, design, program, header, overwrite)) {
} catch (const SQLite::Exception& error) {
    rethrow(path, error);
}

TraceWriter::~TraceWriter()
{
    try {
        if (!d->m_failed)
            d->commit();
    } catch (const SQLite::Exception&) {
        // A destructor cannot report it; committed data stays readable.
    }
}

void TraceWriter::append(const std::vector<TaskRecord>& records)
try {
    if (records.empty())
        return;
    d->begin();
    const auto key = [](const TaskRecord& record) { return std::tie(record.step, record.task, record.device); };
    const auto before = [&](const TaskRecord& a, const TaskRecord& b) { return key(a) < key(b); };
    const std::vector<TaskRecord>* source = &records;
    if (!std::is_sorted(records.begin(), records.end(), before)) {
        d->m_sorted.assign(records.begin(), records.end());
        std::sort(d->m_sorted.begin(), d->m_sorted.end(), before);
        source = &d->m_sorted;
    }
    for (const TaskRecord& record : *source)
        d->m_insertRecord->add(
            {record.step, static_cast<std::int64_t>(record.task), record.device, record.start, record.end});
    d->m_insertRecord->flush();
} catch (const SQLite::Exception& error) {
    d->fail(error);
} catch (const Error&) { // a batch's
    d->giveUp();
    throw;
}

void TraceWriter::append(const std::vector<MemoryRecord>& records)
try {
    if (records.empty())
        return;
    d->begin();
    SQLite::Statement& insert = *d->m_insertMemory;
    for (const MemoryRecord& record : records) {
        insert.bind(1, record.step);
        insert.bind(2, record.device);
        insert.bind(3, record.time);
        insert.bind(4, record.bytes);
        insert.exec();
        insert.reset();
    }
} catch (const SQLite::Exception& error) {
    d->fail(error);
}

void TraceWriter::append(const StepRecord& record)
try {
    d->begin();
    SQLite::Statement& insert = *d->m_insertStep;
    insert.bind(1, record.step);
    insert.bind(2, record.start);
    insert.bind(3, record.end);
    if (std::isnan(record.loss))
        insert.bind(4);
    else
        insert.bind(4, record.loss);
    if (record.coreWait < 0)
        insert.bind(5);
    else
        insert.bind(5, record.coreWait);
    insert.exec();
    insert.reset();
    ++d->m_steps;
} catch (const SQLite::Exception& error) {
    d->fail(error);
}

void TraceWriter::append(const std::vector<GpuRecord>& records)
try {
    if (records.empty())
        return;
    d->begin();
    if (!d->m_gpu)
        d->m_gpu.emplace(*d->m_database, d->m_path, std::move(d->m_deviceOfTask));
    d->m_gpu->add(records);
} catch (const SQLite::Exception& error) {
    d->fail(error);
} catch (const Error&) {
    d->giveUp();
    throw;
}

void TraceWriter::commit()
try {
    d->publish();
    d->commit();
    d->check();
} catch (const SQLite::Exception& error) {
    d->fail(error);
}

void TraceWriter::check()
{
    d->check();
}

void TraceWriter::finish(const std::vector<Bytes>& peakBytes, std::int64_t droppedRecords,
                         const std::string& resultJson)
try {
    d->check();
    d->begin();
    SQLite::Statement update(*d->m_database, "UPDATE DEVICES SET peakBytes = ?2 WHERE deviceId = ?1");
    for (std::size_t device = 0; device < peakBytes.size(); ++device) {
        update.bind(1, static_cast<std::int64_t>(device));
        update.bind(2, peakBytes[device]);
        update.exec();
        update.reset();
    }
    d->setMeta("droppedRecords", droppedRecords);
    d->setMeta("result", resultJson);
    d->setMeta("complete", std::int64_t{1});
    d->commit();
    // A finished trace is one plain file, readable from a folder without write access. While a reader has it open, the
    // log remains.
    d->m_database->tryExec("PRAGMA journal_mode = DELETE");
} catch (const SQLite::Exception& error) {
    d->fail(error);
}

} // namespace pipewright
