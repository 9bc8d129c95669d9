// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/gputables.h"

#include "traces/store/kernelname.h"
#include "traces/store/schema.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <array>
#include <utility>

namespace pipewright {

namespace {

ActivityKind kindOf(GpuRecord::Kind kind)
{
    switch (kind) {
    case GpuRecord::Kind::Kernel: return ActivityKind::Kernel;
    case GpuRecord::Kind::Copy: return ActivityKind::Memcpy;
    case GpuRecord::Kind::Set: return ActivityKind::Memset;
    case GpuRecord::Kind::Overhead: return ActivityKind::Overhead;
    case GpuRecord::Kind::Call: return ActivityKind::Runtime;
    case GpuRecord::Kind::Part: return ActivityKind::Kernel;
    case GpuRecord::Kind::Operator: return ActivityKind::Operator;
    case GpuRecord::Kind::Memory: break; // no slice of time
    }
    return ActivityKind::Other;
}

} // namespace

GpuTables::GpuTables(SQLite::Database& database, const std::string& path, std::vector<int> deviceOfTask)
    : m_database(database), m_path(path), m_deviceOfTask(std::move(deviceOfTask)),
      m_tables(database.getHandle(), path, m_data, ActivityTables::Of::Run)
{
    m_database.exec(traceschema::createLaneTables);
}

void GpuTables::add(const std::vector<GpuRecord>& records)
{
    for (const GpuRecord& record : records) {
        if (record.kind == GpuRecord::Kind::Memory) {
            addMemory(record);
            continue;
        }
        ActivityDetail& detail = m_data.details.front(); // one entry is reused
        detail.bytes = record.bytes;
        detail.copyKind = record.copyKind;
        detail.graphNode = static_cast<std::int64_t>(record.graphNode);
        detail.peer = record.toDevice;
        Activity activity;
        activity.start = record.start;
        activity.end = record.end;
        activity.name = nameOf(record);
        activity.correlation = record.correlation;
        activity.lane = laneOf(record) & 0xffffff;
        activity.kindNumber = static_cast<std::uint8_t>(kindOf(record.kind));
        m_tables.add(activity, record.step, record.task);
    }
    m_tables.flush();
    if (m_memory)
        m_memory->flush();
    writeNewNames();
}

void GpuTables::addMemory(const GpuRecord& record)
{
    if (!m_memory) {
        m_database.exec(traceschema::createGpuMemoryTable);
        m_memory = std::make_unique<BulkInsert>(m_database.getHandle(), m_path,
                                                "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS", std::size_t{6});
    }
    const auto orNull = [](std::int64_t value, bool absent) { return absent ? BulkInsert::null : value; };
    m_memory->add({record.start, orNull(record.device, record.device < 0), record.bytes,
                   orNull(record.correlation, record.correlation == 0), record.step,
                   orNull(record.task, record.task == none)});
}

std::uint32_t GpuTables::nameOf(const GpuRecord& record)
{
    const auto [known, isNew] = m_names.try_emplace(record.name, 0);
    if (isNew)
        known->second = m_data.strings.id(demangled(record.name));
    return known->second;
}

std::uint32_t GpuTables::laneOf(const GpuRecord& record)
{
    TraceLane lane;
    lane.rank = record.rank;
    if (record.kind == GpuRecord::Kind::Operator) {
        lane.thread = record.thread;
        lane.processName = "device " + std::to_string(record.toDevice);
        lane.name = lane.thread == 0 ? "operators" : "operators, thread " + std::to_string(lane.thread);
        return this->lane({record.rank, -1, lane.thread, record.toDevice}, lane, record.toDevice);
    }
    const bool overhead = record.kind == GpuRecord::Kind::Overhead;
    if (overhead || record.kind == GpuRecord::Kind::Call) {
        lane.thread = overhead ? -1 : record.thread;
        lane.processName = "the host's calls";
        lane.name = overhead ? "CUPTI's own work" : "thread " + std::to_string(lane.thread);
        return this->lane({record.rank, -1, lane.thread, -1}, lane, -1);
    }
    lane.kind = TraceLane::Kind::Stream;
    lane.device = record.device;
    if (record.kind == GpuRecord::Kind::Part && record.stream >= 0) {
        lane.device = record.toDevice;
        lane.thread = record.stream;
        lane.processName = "device " + std::to_string(record.toDevice);
        lane.name = pipewright::nameOf(static_cast<PartStream>(record.stream));
        return this->lane({record.rank, record.toDevice, record.stream, record.toDevice}, lane, record.toDevice);
    }
    if (record.kind == GpuRecord::Kind::Part) {
        lane.processName = "device " + std::to_string(record.toDevice);
        lane.name = "member " + std::to_string(record.device);
        return this->lane({record.rank, record.device, 0, record.toDevice}, lane, record.toDevice);
    }
    lane.processName = "GPU " + std::to_string(record.device);
    lane.thread = record.stream;
    lane.name = "stream " + std::to_string(record.stream);
    const int device = record.task >= m_deviceOfTask.size() ? -1 : m_deviceOfTask[record.task];
    const LaneKey key{record.rank, record.device, lane.thread, device};
    // Records outside of every block go to the lane of the earlier blocks of their stream, if any.
    if (device < 0)
        if (const auto next = m_lanes.upper_bound(key);
            !m_lanes.contains(key) && next != m_lanes.end() && std::get<0>(next->first) == record.rank
            && std::get<1>(next->first) == record.device && std::get<2>(next->first) == lane.thread)
            return next->second;
    return this->lane(key, lane, device);
}

std::uint32_t GpuTables::lane(const LaneKey& key, TraceLane lane, int device)
{
    const auto [known, isNew] = m_lanes.try_emplace(key, static_cast<std::uint32_t>(m_data.lanes.size()));
    if (!isNew)
        return known->second;
    SQLite::Statement insert(m_database, "INSERT INTO LANES VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.bind(1, static_cast<std::int64_t>(known->second));
    insert.bind(2, lane.kind == TraceLane::Kind::Stream ? "stream" : "thread");
    insert.bind(3, lane.rank);
    insert.bind(4, lane.process);
    insert.bind(5, lane.thread);
    lane.device < 0 ? insert.bind(6) : insert.bind(6, lane.device);
    insert.bind(7, lane.name);
    insert.bind(8, lane.processName);
    insert.bind(9, lane.sortIndex);
    insert.bind(10, 0);
    device < 0 ? insert.bind(11) : insert.bind(11, device);
    insert.exec();
    m_data.lanes.push_back(std::move(lane));
    return known->second;
}

void GpuTables::writeNewNames()
{
    SQLite::Statement insert(m_database, "INSERT INTO StringIds VALUES (?, ?)");
    for (; m_namesWritten < m_data.strings.size(); ++m_namesWritten) {
        insert.bind(1, static_cast<std::int64_t>(m_namesWritten));
        insert.bindNoCopy(2, m_data.strings.text(static_cast<std::uint32_t>(m_namesWritten)));
        insert.exec();
        insert.reset();
    }
}

} // namespace pipewright
