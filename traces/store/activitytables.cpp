// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/activitytables.h"

#include <sqlite3.h>

#include <initializer_list>
#include <utility>

namespace pipewright {

namespace {

enum Table : std::size_t { Kernels, Copies, Sets, Synchronizations, Calls, Nvtx, Overheads, Slices };

struct Shape {
    const char* name;
    std::vector<const char*> columns;
};

const Shape& shapeOf(std::size_t table)
{
    static const std::array<Shape, 8> shapes{{
        {"CUPTI_ACTIVITY_KIND_KERNEL",
         {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName", "shortName",
          "graphNodeId", "laneId"}},
        {"CUPTI_ACTIVITY_KIND_MEMCPY",
         {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind", "graphNodeId",
          "nameId", "laneId", "dstDeviceId"}},
        {"CUPTI_ACTIVITY_KIND_MEMSET",
         {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "graphNodeId", "nameId",
          "laneId"}},
        {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
         {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "nameId", "laneId"}},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId", "nameId", "laneId"}},
        {"NVTX_EVENTS", {"start", "end", "eventType", "globalTid", "textId", "laneId"}},
        {"PROFILER_OVERHEAD", {"start", "end", "globalTid", "nameId", "laneId"}},
        {"SLICES", {"start", "end", "nameId", "categoryId", "correlationId", "laneId"}},
    }};
    return shapes[table];
}

/// So that one step is read without the others.
void indexBySteps(sqlite3* database, const std::string& path, const std::string& table)
{
    const std::string create = "CREATE INDEX " + table + "_BY_STEP ON " + table + " (step)";
    if (sqlite3_exec(database, create.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        throwDatabaseError(database, path);
}

std::int64_t orNull(std::int64_t value, std::int64_t absent)
{
    return value == absent ? BulkInsert::null : value;
}

} // namespace

ActivityTables::ActivityTables(sqlite3* database, std::string path, TraceData& data, Of of)
    : m_database(database), m_path(std::move(path)), m_data(data), m_of(of)
{
    for (int kind = 0; kind < activityKinds; ++kind)
        m_category[static_cast<std::size_t>(kind)] = data.strings.id(nameOf(static_cast<ActivityKind>(kind)));
}

ActivityTables::~ActivityTables() = default;

void ActivityTables::flush()
{
    for (const auto& table : m_tables)
        if (table)
            table->flush();
    if (m_communications)
        m_communications->flush();
}

std::int64_t ActivityTables::globalThread(const TraceLane& lane)
{
    constexpr std::int64_t mask = 0xffffff;
    const std::int64_t thread = lane.kind == TraceLane::Kind::Thread ? lane.thread & mask : 0;
    return (std::int64_t{lane.rank} << 48) | ((lane.process & mask) << 24) | thread;
}

BulkInsert& ActivityTables::table(std::size_t index)
{
    if (!m_tables[index]) {
        std::vector<const char*> columns = shapeOf(index).columns;
        if (m_of == Of::Run)
            columns.insert(columns.end(), {"step", "taskId"});
        m_tables[index] = std::make_unique<BulkInsert>(m_database, m_path, shapeOf(index).name, columns);
        if (m_of == Of::Run)
            indexBySteps(m_database, m_path, shapeOf(index).name);
    }
    return *m_tables[index];
}

void ActivityTables::addCommunication(const Activity& a, std::int64_t record)
{
    const ActivityDetail& detail = m_data.details[a.detail];
    static constexpr std::array columns{"laneId",  "record",       "start", "end",  "collectiveId",
                                        "groupId", "communicator", "bytes", "peer", "groupSize"};
    if (!m_communications)
        m_communications = std::make_unique<BulkInsert>(m_database, m_path, "COMMUNICATIONS", columns);
    m_communications->add({a.lane, record, a.start, a.end, detail.collective, orNull(detail.group, 0),
                           orNull(static_cast<std::int64_t>(detail.communicator), 0), orNull(detail.bytes, -1),
                           orNull(detail.peer, -1), orNull(detail.groupSize, 0)});
}

std::int64_t ActivityTables::add(const Activity& a, int step, TaskId task)
{
    const auto insert = [&](std::size_t index, std::initializer_list<std::int64_t> values) {
        m_row.assign(values);
        if (m_of == Of::Run)
            m_row.insert(m_row.end(), {step, task == none ? BulkInsert::null : static_cast<std::int64_t>(task)});
        return table(index).add(m_row);
    };
    const TraceLane& lane = m_data.lanes[a.lane];
    const ActivityDetail& detail = m_data.details[a.detail];
    const std::int64_t correlation = orNull(a.correlation, 0), device = orNull(lane.device, -1);
    const std::int64_t stream = lane.kind == TraceLane::Kind::Stream ? lane.thread : BulkInsert::null;
    const std::int64_t global = globalThread(lane), node = orNull(detail.graphNode, 0);
    std::int64_t record = 0;
    switch (a.kind()) {
    case ActivityKind::Kernel:
        record = insert(Kernels, {a.start, a.end, device, stream, correlation, global, a.name, a.name, node, a.lane});
        break;
    case ActivityKind::Memcpy:
        record = insert(Copies, {a.start, a.end, device, stream, correlation, global, orNull(detail.bytes, -1),
                                 orNull(detail.copyKind, 0), node, a.name, a.lane, orNull(detail.peer, -1)});
        break;
    case ActivityKind::Memset:
        record = insert(Sets, {a.start, a.end, device, stream, correlation, global, orNull(detail.bytes, -1), node,
                               a.name, a.lane});
        break;
    case ActivityKind::Synchronization:
        record = insert(Synchronizations, {a.start, a.end, device, stream, correlation, global, a.name, a.lane});
        break;
    case ActivityKind::Runtime: record = insert(Calls, {a.start, a.end, global, correlation, a.name, a.lane}); break;
    case ActivityKind::Range:
    case ActivityKind::Mark: {
        constexpr int mark = 34, pushPop = 59; // Nsight's event types
        const bool instant = a.kind() == ActivityKind::Mark;
        record = insert(
            Nvtx, {a.start, instant ? BulkInsert::null : a.end, instant ? mark : pushPop, global, a.name, a.lane});
        break;
    }
    case ActivityKind::Overhead: record = insert(Overheads, {a.start, a.end, global, a.name, a.lane}); break;
    case ActivityKind::GpuRange:
    case ActivityKind::Operator:
    case ActivityKind::Python:
    case ActivityKind::Other:
        record = insert(Slices, {a.start, a.end, a.name, m_category[a.kindNumber], correlation, a.lane});
        break;
    }
    if (detail.collective != 0)
        addCommunication(a, record);
    return record;
}

} // namespace pipewright
