// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the tables of a recording and matches its dictionary to a Program by lane and position. O(tasks log tasks),
// O(records) per step.
#include "traces/store/tracereader.h"

#include "core/base/diagnostic.h"
#include "core/base/parallelfor.h"
#include "core/files/designfile.h"
#include "traces/store/database.h"
#include "traces/store/schema.h"
#include "traces/store/tracerecovery.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace pipewright {

namespace {

Op opOf(const std::string& name)
{
    for (const Op known : allOps)
        if (name.size() == 1 && name[0] == letter(known))
            return known;
    throw Error("TASKS", "\"" + name + "\" is no operation of a block",
                "the trace was written by a newer version, or changed by hand");
}

/// `row`: of TASKS, as readDictionary() selects it.
Task taskOf(SQLite::Statement& row)
{
    const std::string kind = row.getColumn(0).getString();
    if (const auto task =
            Task::stored(kind, opOf(row.getColumn(1).getString()), row.getColumn(4).getInt(), row.getColumn(2).getInt(),
                         row.getColumn(3).getInt(), row.getColumn(5).getInt(), row.getColumn(6).getInt()))
        return *task;
    throw Error("TASKS", "\"" + kind + "\" is no kind of task",
                "the trace was written by a newer version, or changed by hand");
}

/// Tasks whose order is part of the program: what a device computes, and what a channel carries. Updates and reductions
/// are matched by stage, since their order among each other depends on times.
using Lane = std::tuple<TaskKind, int, int, int>;
std::map<Lane, std::vector<TaskId>> lanesOf(const std::vector<Task>& tasks)
{
    std::map<Lane, std::vector<TaskId>> lanes;
    for (TaskId id = 0; id < tasks.size(); ++id) {
        const Task& task = tasks[id];
        const bool ordered = task.kind == TaskKind::Compute || moves(task.kind);
        lanes[{task.kind, task.device, task.storedPeer(), ordered ? -1 : task.stage}].push_back(id);
    }
    return lanes;
}

} // namespace

struct TraceReader::Private {
    Private(const std::string& path, BlockTime by) : m_path(path), m_database(openTraceDatabase(path)), m_by(by) {}

    /// What `read` returns; an error of the database is rethrown as one of the trace.
    template<typename Read>
    auto reading(const Read& read) const
    try {
        return read();
    } catch (const SQLite::Exception& error) {
        rethrowTraceError(m_path, error);
    }

    /// Calls `use` with every row of a query. `bound`: the values of ?1, ?2, …
    template<typename Use>
    void eachRow(const std::string& sql, const Use& use, const auto&... bound) const
    {
        reading([&] {
            SQLite::Statement query(m_database, sql);
            int place = 0;
            (query.bind(++place, bound), ...);
            while (query.executeStep())
                use(query);
        });
    }

    std::optional<std::string> metaText(const char* name) const
    {
        std::optional<std::string> text;
        const auto take = [&](SQLite::Statement& row) { text = row.getColumn(0).getString(); };
        eachRow("SELECT value FROM META WHERE name = ?1 AND value IS NOT NULL", take, name);
        return text;
    }

    std::int64_t metaNumber(const char* name) const
    {
        std::int64_t number = 0;
        const auto take = [&](SQLite::Statement& row) { number = row.getColumn(0).getInt64(); };
        eachRow("SELECT value FROM META WHERE name = ?1", take, name);
        return number;
    }

    void readDictionary()
    {
        eachRow("SELECT kind, op, stage, microbatch, replica, deviceId, peer, label FROM TASKS ORDER BY taskId",
                [&](SQLite::Statement& row) {
                    m_dictionary.push_back(taskOf(row));
                    m_labels.push_back(row.getColumn(7).getString());
                });
    }

    /// For each task of the dictionary its id in `program`. The programs are equal when every device computes the same
    /// tasks and every channel carries the same transfers in the same order; the interleaving may differ, so a trace
    /// still fits its design after the costs changed.
    std::vector<TaskId> match(const Program& program) const
    {
        if (metaText("backend") == "import")
            return matchRecognised(program);
        const char* const hint = "overlay a trace on the design it was recorded from; the trace holds that design";
        if (program.tasks.size() != m_dictionary.size())
            throw Error(m_path,
                        "the trace is of another program: it has " + std::to_string(m_dictionary.size())
                            + " tasks, the design has " + std::to_string(program.tasks.size()),
                        hint);
        const auto recorded = lanesOf(m_dictionary);
        const auto designed = lanesOf(program.tasks);
        std::vector<TaskId> ids(m_dictionary.size(), none);
        for (const auto& [lane, tasks] : recorded) {
            const auto found = designed.find(lane);
            for (std::size_t i = 0; i < tasks.size(); ++i) {
                const bool missing = found == designed.end() || i >= found->second.size();
                if (missing || m_dictionary[tasks[i]] != program.tasks[found->second[i]])
                    throw Error(m_path,
                                "the trace is of another program: where it ran " + m_labels[tasks[i]] + " on device "
                                    + std::to_string(m_dictionary[tasks[i]].device) + ", the design has "
                                    + (missing ? "nothing" : program.label(found->second[i])),
                                hint);
                ids[tasks[i]] = found->second[i];
            }
        }
        if (program.blocks())
            requireSameInterleaving(program, ids, hint);
        return ids;
    }

    /// Where transfers hold their devices up, it counts between which blocks they stand.
    void requireSameInterleaving(const Program& program, const std::vector<TaskId>& ids, const char* hint) const
    {
        std::vector<TaskId> latest(program.devices.size(), 0); // per device, one behind the task reached so far
        for (TaskId recorded = 0; recorded < ids.size(); ++recorded) {
            const Task& task = m_dictionary[recorded];
            if (task.kind != TaskKind::Compute && task.kind != TaskKind::Transfer)
                continue;
            for (const int device : {task.device, task.recordedOn()}) {
                if (device < 0 || device >= std::ssize(latest))
                    continue;
                if (ids[recorded] + 1 < latest[device])
                    throw Error(m_path,
                                "the trace is of another program: device " + std::to_string(device) + " had "
                                    + m_labels[recorded] + " after " + program.label(latest[device] - 1)
                                    + ", and transfers hold up their devices",
                                hint);
                latest[device] = std::max(latest[device], ids[recorded] + 1);
            }
        }
    }

    /// An imported trace has recognised blocks in any order and without transfers, so they are matched by operation,
    /// stage and microbatch.
    std::vector<TaskId> matchRecognised(const Program& program) const
    {
        if (m_dictionary.empty())
            throw Error(m_path, "no block was recognised in this trace",
                        "record it with ranges named PP:0F3, as torch.distributed.pipelining does, or F0.3");
        const auto key = [](const Task& task) {
            return std::tuple(task.kind, task.op, task.stage, task.storedMicrobatch());
        };
        std::map<std::tuple<TaskKind, Op, int, int>, TaskId> designed;
        for (TaskId id = 0; id < program.tasks.size(); ++id)
            if (program.tasks[id].replica == 0)
                designed.emplace(key(program.tasks[id]), id);
        std::vector<TaskId> ids;
        for (std::size_t i = 0; i < m_dictionary.size(); ++i) {
            const auto found = designed.find(key(m_dictionary[i]));
            if (found == designed.end() && m_dictionary[i].kind == TaskKind::Compute)
                throw Error(m_path,
                            "the trace is of another program: it ran " + m_labels[i]
                                + ", which the design does not have",
                            "overlay a trace on the design of the schedule that it ran");
            ids.push_back(found == designed.end() ? none : found->second); // two stages on one device need no transfer
        }
        return ids;
    }

    Nanoseconds startOf(int step) const
    {
        std::optional<Nanoseconds> start;
        const auto take = [&](SQLite::Statement& row) { start = storedTime(row.getColumn(0)); };
        eachRow("SELECT start FROM STEPS WHERE step = ?1", take, step);
        if (!start)
            throw Error(m_path, "step " + std::to_string(step) + " was not finished in this trace",
                        "steps are numbered from 0");
        return *start;
    }

    /// The records of one step, without memory. `ids` from match().
    Timeline times(const Program& program, const std::vector<TaskId>& ids, int step, BlockTime by) const
    try {
        const Nanoseconds origin = startOf(step);
        Timeline timeline;
        timeline.start.assign(program.tasks.size(), notRun);
        timeline.end.assign(program.tasks.size(), notRun);
        // Most of the time for reading a long trace is spent here; SQLiteCpp's column objects would double it.
        sqlite3* const handle = m_database.getHandle();
        sqlite3_stmt* row = nullptr;
        if (const int code =
                sqlite3_prepare_v2(handle, "SELECT taskId, start, end FROM RECORDS WHERE step = ?1", -1, &row, nullptr);
            code != SQLITE_OK)
            throw SQLite::Exception(handle, code);
        const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> records(row, sqlite3_finalize);
        sqlite3_bind_int64(row, 1, step);
        int code = SQLITE_ROW;
        while ((code = sqlite3_step(row)) == SQLITE_ROW) {
            const std::int64_t task = sqlite3_column_int64(row, 0);
            if (task < 0 || task >= static_cast<std::int64_t>(ids.size()))
                throw Error(m_path, "the trace is damaged: a record of the unknown task " + std::to_string(task));
            const TaskId id = ids[task];
            if (id == none)
                continue;
            timeline.start[id] = std::max<Nanoseconds>(0, storedTime(sqlite3_column_int64(row, 1)) - origin);
            timeline.end[id] =
                std::max<Nanoseconds>(timeline.start[id], storedTime(sqlite3_column_int64(row, 2)) - origin);
        }
        if (code != SQLITE_DONE)
            throw SQLite::Exception(handle, code);
        if (by == BlockTime::Kernels) {
            const Timeline spans = spansOf(readGpuWork(m_database, m_path, step, origin, ids), program.tasks.size());
            for (TaskId id = 0; id < program.tasks.size(); ++id)
                if (spans.start[id] != notRun && !moves(program.tasks[id].kind)) {
                    timeline.start[id] = spans.start[id];
                    timeline.end[id] = spans.end[id];
                }
        }
        return timeline;
    } catch (const SQLite::Exception& error) {
        rethrowTraceError(m_path, error);
    }

    std::string m_path;
    mutable SQLite::Database m_database;
    BlockTime m_by;
    std::vector<Task> m_dictionary;
    std::vector<std::string> m_labels;
};

std::string_view nameOf(BlockTime by)
{
    switch (by) {
    case BlockTime::Events: return "events";
    case BlockTime::Kernels: return "kernels";
    }
    return {};
}

TraceReader::TraceReader(const std::string& path, BlockTime by)
try : d(std::make_unique<Private>(path, by)) {
    d->readDictionary();
    if (by == BlockTime::Kernels && !holdsKernels())
        throw Error(path, "the trace holds no kernels of blocks",
                    "take the times of events; kernels are recorded by runs on GPUs where CUPTI is found, and by "
                    "PyTorch's with --record kernels");
} catch (const SQLite::Exception& error) {
    rethrowTraceError(path, error);
}

TraceReader::~TraceReader() = default;

BlockTime TraceReader::blockTime() const
{
    return d->m_by;
}

std::optional<WorkKind> TraceReader::recordedWork() const
{
    return d->reading([&] { return pipewright::recordedWork(d->m_database); });
}

bool TraceReader::holdsKernels() const
{
    return recordedWork() == WorkKind::Kernels;
}

GpuWork TraceReader::gpuWork(const Program& program, int step) const
{
    return d->reading([&] { return readGpuWork(d->m_database, d->m_path, step, d->startOf(step), d->match(program)); });
}

TraceHeader TraceReader::header() const
{
    TraceHeader header;
    header.backend = d->metaText("backend").value_or("");
    header.maths = d->metaText("maths").value_or("");
    header.wallClockNs = d->metaNumber("utcEpochNs");
    header.tool = d->metaText("tool").value_or("");
    d->eachRow("SELECT name FROM DEVICES ORDER BY deviceId",
               [&](SQLite::Statement& row) { header.deviceNames.push_back(row.getColumn(0).getString()); });
    return header;
}

bool TraceReader::holdsDesign() const
{
    return d->metaText("design").has_value();
}

Design TraceReader::design() const
{
    const std::optional<std::string> text = d->metaText("design");
    if (!text)
        throw Error(d->m_path, "the trace was imported and holds no design",
                    "take the design file of the schedule that ran, and lay the trace over it");
    return designFromJson(*text, d->m_path);
}

bool TraceReader::complete() const
{
    return d->metaNumber("complete") != 0;
}

Diagnostics TraceReader::whatMayBeMissing() const
{
    return d->reading([&] { return complete() ? Diagnostics{} : whatAKilledRunLeft(d->m_database, d->m_path); });
}

std::int64_t TraceReader::droppedRecords() const
{
    return d->metaNumber("droppedRecords");
}

std::string TraceReader::resultJson() const
{
    return d->metaText("result").value_or("");
}

std::vector<StepRecord> TraceReader::steps() const
{
    std::vector<StepRecord> steps;
    bool knowsWaits = false; // traces of older versions do not
    d->eachRow("SELECT 1 FROM pragma_table_info('STEPS') WHERE name = 'coreWait'",
               [&](SQLite::Statement&) { knowsWaits = true; });
    const std::string wait = knowsWaits ? "coreWait" : "NULL";
    d->eachRow("SELECT step, start, end, loss, " + wait + " FROM STEPS ORDER BY step", [&](SQLite::Statement& row) {
        const SQLite::Column loss = row.getColumn(3), coreWait = row.getColumn(4);
        StepRecord record;
        record.step = row.getColumn(0).getInt();
        record.start = storedTime(row.getColumn(1));
        record.end = storedTime(row.getColumn(2));
        record.loss = loss.isNull() ? std::numeric_limits<double>::quiet_NaN() : loss.getDouble();
        record.coreWait = coreWait.isNull() ? -1 : storedTime(coreWait);
        steps.push_back(record);
    });
    return steps;
}

Timeline TraceReader::timeline(const Program& program, int step, BlockTime by) const
{
    const Nanoseconds origin = d->startOf(step);
    Timeline timeline = d->times(program, d->match(program), step, by);
    timeline.memory.resize(program.devices.size());
    const auto take = [&](SQLite::Statement& row) {
        const int device = row.getColumn(0).getInt();
        if (device < 0 || device >= static_cast<int>(program.devices.size()))
            throw Error(d->m_path,
                        "the trace is damaged: a memory sample of the unknown device " + std::to_string(device));
        timeline.memory[device].push_back({storedTime(row.getColumn(1)) - origin, row.getColumn(2).getInt64()});
    };
    d->eachRow("SELECT deviceId, start, bytes FROM MEMORY WHERE step = ?1 ORDER BY start, rowid", take, step);
    return timeline;
}

void TraceReader::eachStep(const Program& program, const std::vector<int>& steps,
                           const std::function<void(int, const Timeline&)>& use) const
{
    const std::vector<TaskId> ids = d->match(program);
    const auto read = [&](std::size_t i) { return d->times(program, ids, steps[i], d->m_by); };
    Timeline next = steps.empty() ? Timeline() : read(0);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Timeline timeline = std::move(next);
        const bool more = i + 1 < steps.size();
        parallelFor(more ? 2 : 1, [&](std::size_t task) {
            if (task == 0)
                use(steps[i], timeline);
            else
                next = read(i + 1);
        });
    }
}

int TraceReader::medianStep() const
{
    std::vector<StepRecord> finished = steps();
    if (finished.empty())
        throw !holdsDesign()
            ? Error(d->m_path, "no block of a schedule was recognised in this imported trace",
                    "PyTorch's blocks are known by ranges such as PP:0F3, those of ScheduleGPipe and Schedule1F1B by "
                    "their operators, and Megatron's by ranges such as F0.3, which "
                    "resources/examples/megatron_nvtx.py leaves; `pipewright import` says what is missing")
            : Error(d->m_path, "the trace has no finished step", "let the run finish at least one step");
    if (finished.size() > 1)
        finished.erase(finished.begin());
    const auto middle = finished.begin() + static_cast<std::ptrdiff_t>((finished.size() - 1) / 2);
    std::nth_element(finished.begin(), middle, finished.end(), [](const StepRecord& a, const StepRecord& b) {
        return std::pair(a.end - a.start, a.step) < std::pair(b.end - b.start, b.step);
    });
    return middle->step;
}

std::vector<Bytes> TraceReader::peakBytes() const
{
    std::vector<Bytes> peaks;
    // For a killed run, one pass over all samples; a search per device would cost O(devices * samples).
    d->eachRow(
        "SELECT coalesce(peakBytes, most, 0) FROM DEVICES LEFT JOIN (SELECT deviceId, max(bytes) AS most FROM MEMORY "
        "WHERE EXISTS (SELECT 1 FROM DEVICES WHERE peakBytes IS NULL) GROUP BY deviceId) USING (deviceId) "
        "ORDER BY deviceId",
        [&](SQLite::Statement& row) { peaks.push_back(row.getColumn(0).getInt64()); });
    return peaks;
}

} // namespace pipewright
