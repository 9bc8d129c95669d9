// SPDX-License-Identifier: GPL-3.0-or-later
// The table and the columns of each kind of slice. Tables are created with their first row, as in Nsight's exports: a
// trace without copies has no table of copies. The tables of a Pipewright run also have the step and the task of a row.
#pragma once

#include "core/program/program.h"
#include "traces/store/activity.h"
#include "traces/store/bulkinsert.h"

#include <array>
#include <memory>

namespace pipewright {

class ActivityTables {
public:
    enum class Of { Import, Run };
    /// Keeps references to all three.
    ActivityTables(sqlite3* database, std::string path, TraceData& data, Of of = Of::Import);
    ~ActivityTables();

    /// Returns the row's number in its table; step and task are written of a run only. Throws Error.
    std::int64_t add(const Activity& activity, int step = 0, TaskId task = none);
    void flush(); ///< after the last one. Throws Error.

    /// Nsight's packed number: bits 24 to 47 the process, the lowest 24 the thread; the rank above them.
    static std::int64_t globalThread(const TraceLane& lane);

private:
    static constexpr std::size_t tableCount = 8;
    BulkInsert& table(std::size_t index);
    void addCommunication(const Activity& activity, std::int64_t record);

    sqlite3* m_database;
    std::string m_path;
    TraceData& m_data;
    Of m_of;
    std::vector<std::int64_t> m_row;
    std::array<std::unique_ptr<BulkInsert>, tableCount> m_tables;
    std::unique_ptr<BulkInsert> m_communications;
    std::array<std::uint32_t, activityKinds> m_category{}; ///< the kinds' names in StringIds
};

} // namespace pipewright
