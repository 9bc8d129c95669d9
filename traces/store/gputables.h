// SPDX-License-Identifier: GPL-3.0-or-later
// Writes the records of a run's GPU recorder during the run, into the same tables as imported traces (schema.h):
// kernels, copies, sets, waits, calls and the recorder's own work, each with its step and task. Kernel names are
// demangled. A lane is the stream of a GPU as used by one device of the design, or a thread that makes calls.
#pragma once

#include "traces/store/activitytables.h"
#include "traces/store/tracewriter.h"

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace SQLite {
class Database;
}

namespace pipewright {

class GpuTables {
public:
    /// Makes the tables, within a transaction that is open. Keeps a reference to the database.
    GpuTables(SQLite::Database& database, const std::string& path, std::vector<int> deviceOfTask);

    void add(const std::vector<GpuRecord>& records);

private:
    /// Process, GPU (-1: a thread of the host), stream or thread, device of the design (-1: not known).
    using LaneKey = std::tuple<int, int, std::int64_t, int>;

    void addMemory(const GpuRecord& record);
    std::uint32_t nameOf(const GpuRecord& record);
    std::uint32_t laneOf(const GpuRecord& record);
    std::uint32_t lane(const LaneKey& key, TraceLane lane, int device);
    void writeNewNames();

    SQLite::Database& m_database;
    std::string m_path;
    std::vector<int> m_deviceOfTask;
    TraceData m_data; ///< names and lanes so far, and no activities
    ActivityTables m_tables;
    std::unique_ptr<BulkInsert> m_memory;
    std::map<LaneKey, std::uint32_t> m_lanes;
    std::unordered_map<std::string, std::uint32_t> m_names; ///< by the recorded (mangled) name
    std::size_t m_namesWritten = 0;
};

} // namespace pipewright
