// SPDX-License-Identifier: GPL-3.0-or-later
// One range of the index by step per table. O(records of the step).
#include "traces/store/gpuwork.h"

#include "core/base/diagnostic.h"
#include "traces/store/database.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <unordered_map>

namespace pipewright {

namespace {

struct StreamLane {
    int rank = 0, device = -1;
    bool isMember = false; ///< a member of a group, with its parts and collectives
};

std::vector<StreamLane> lanesOf(SQLite::Database& database)
{
    std::vector<StreamLane> lanes;
    SQLite::Statement query(database, "SELECT rank, taskDeviceId, name LIKE 'member %' FROM LANES ORDER BY laneId");
    while (query.executeStep())
        lanes.push_back({query.getColumn(0).getInt(), query.getColumn(1).isNull() ? -1 : query.getColumn(1).getInt(),
                         query.getColumn(2).getInt() != 0});
    return lanes;
}

std::uint64_t callOf(int rank, std::int64_t correlation)
{
    return static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(correlation);
}

/// The end of each call, by process and correlation; the first of several (a runtime call includes driver calls).
std::unordered_map<std::uint64_t, Nanoseconds> callsOf(SQLite::Database& database, const std::vector<StreamLane>& lanes,
                                                       int step)
{
    std::unordered_map<std::uint64_t, Nanoseconds> calls;
    if (!database.tableExists("CUPTI_ACTIVITY_KIND_RUNTIME"))
        return calls;
    SQLite::Statement query(database, "SELECT correlationId, laneId, end FROM CUPTI_ACTIVITY_KIND_RUNTIME "
                                      "WHERE step = ?1 AND correlationId IS NOT NULL");
    query.bind(1, step);
    while (query.executeStep()) {
        const std::size_t lane = query.getColumn(1).getInt64();
        const int rank = lane < lanes.size() ? lanes[lane].rank : 0;
        const Nanoseconds end = storedTime(query.getColumn(2));
        const auto [call, isNew] = calls.try_emplace(callOf(rank, query.getColumn(0).getInt64()), end);
        if (!isNew)
            call->second = std::min(call->second, end);
    }
    return calls;
}

constexpr const char* operators = "SLICES"; // a run's hold nothing else

struct WorkTable {
    const char* name;
    const char* columns; ///< device, correlation, name, bytes
    ActivityKind kind;
};
constexpr WorkTable workTables[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", "deviceId, correlationId, demangledName, NULL", ActivityKind::Kernel},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "deviceId, correlationId, nameId, bytes", ActivityKind::Memcpy},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "deviceId, correlationId, nameId, bytes", ActivityKind::Memset},
    {operators, "NULL, NULL, nameId, NULL", ActivityKind::Operator},
};

} // namespace

std::string_view nameOf(WorkKind kind)
{
    switch (kind) {
    case WorkKind::Kernels: return "kernels";
    case WorkKind::Operators: return "operators";
    case WorkKind::Parts: return "parts";
    }
    return {};
}

std::optional<WorkKind> recordedWork(SQLite::Database& database)
{
    if (database.tableExists("SLICE_CHUNKS"))
        return std::nullopt;
    const bool kernels = database.tableExists("CUPTI_ACTIVITY_KIND_KERNEL");
    if (kernels && SQLite::Statement(database, "SELECT 1 FROM LANES WHERE processName LIKE 'GPU %'").executeStep())
        return WorkKind::Kernels;
    if (database.tableExists(operators))
        return WorkKind::Operators;
    return kernels ? std::optional(WorkKind::Parts) : std::nullopt;
}

GpuWork readGpuWork(SQLite::Database& database, const std::string& path, int step, Nanoseconds origin,
                    const std::vector<TaskId>& ids)
{
    GpuWork work;
    const std::optional<WorkKind> kind = recordedWork(database);
    if (!kind)
        return work;
    work.kind = *kind;
    const std::vector<StreamLane> lanes = lanesOf(database);
    SQLite::Statement names(database, "SELECT value FROM StringIds ORDER BY id");
    while (names.executeStep())
        work.names.push_back(names.getColumn(0).getString());
    const auto calls = callsOf(database, lanes, step);
    for (const WorkTable& table : workTables) {
        if (!database.tableExists(table.name))
            continue;
        SQLite::Statement query(database, std::string("SELECT start, end, laneId, taskId, ") + table.columns + " FROM "
                                              + table.name + " WHERE step = ?1");
        query.bind(1, step);
        while (query.executeStep()) {
            GpuWork::Slice& slice = work.slices.emplace_back();
            slice.kind = table.kind;
            slice.start = storedTime(query.getColumn(0)) - origin;
            slice.end = std::max(slice.start, storedTime(query.getColumn(1)) - origin);
            slice.lane = query.getColumn(2).getUInt();
            const std::int64_t task = query.getColumn(3).isNull() ? -1 : query.getColumn(3).getInt64();
            slice.name = query.getColumn(6).getUInt();
            if (slice.lane >= lanes.size() || slice.name >= work.names.size()
                || task >= static_cast<std::int64_t>(ids.size()))
                throw Error(path, "the trace is damaged: a record of an unknown lane, name or task");
            if (task >= 0)
                slice.task = ids[task];
            // Kernels have priority; the parts of members are used only when nothing else was recorded.
            if (work.kind == WorkKind::Kernels && lanes[slice.lane].isMember) {
                work.slices.pop_back();
                continue;
            }
            slice.rank = lanes[slice.lane].rank;
            slice.device = lanes[slice.lane].device;
            slice.gpu = query.getColumn(4).getInt();
            if (!query.getColumn(5).isNull())
                if (const auto call = calls.find(callOf(slice.rank, query.getColumn(5).getInt64()));
                    call != calls.end())
                    slice.launched = call->second - origin;
            if (!query.getColumn(7).isNull())
                slice.bytes = query.getColumn(7).getInt64();
        }
    }
    std::stable_sort(work.slices.begin(), work.slices.end(),
                     [](const GpuWork::Slice& a, const GpuWork::Slice& b) { return a.start < b.start; });
    if (database.tableExists("PROFILER_OVERHEAD")) {
        SQLite::Statement query(
            database, "SELECT count(*), coalesce(sum(end - start), 0) FROM PROFILER_OVERHEAD WHERE step = ?1");
        query.bind(1, step);
        query.executeStep();
        work.overheads = query.getColumn(0).getInt64();
        work.overhead = query.getColumn(1).getInt64();
    }
    return work;
}

Timeline spansOf(const GpuWork& work, std::size_t tasks)
{
    Timeline spans;
    spans.start.assign(tasks, notRun);
    spans.end.assign(tasks, notRun);
    for (const GpuWork::Slice& slice : work.slices) {
        if (slice.task >= tasks)
            continue;
        Nanoseconds &start = spans.start[slice.task], &end = spans.end[slice.task];
        // notRun is the least number, and a kernel may have begun before its step did.
        start = start == notRun ? std::max<Nanoseconds>(0, slice.start)
                                : std::min(start, std::max<Nanoseconds>(0, slice.start));
        end = std::max({end, start, slice.end});
    }
    return spans;
}

} // namespace pipewright
