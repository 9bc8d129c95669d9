// SPDX-License-Identifier: GPL-3.0-or-later
// Maps the numbers in an Nsight export's tables to names, threads, streams and processes.
#pragma once

#include "traces/store/activity.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace pipewright {

class NsightLanes {
public:
    NsightLanes(SQLite::Database& database, TraceData& data);

    /// A process or thread number holds the process in its bits 24 to 47 and the thread below.
    static std::int64_t processOf(std::int64_t global) { return (global / 0x1000000) % 0x1000000; }
    static std::int64_t threadOf(std::int64_t global) { return global % 0x1000000; }

    std::uint32_t thread(std::int64_t globalThread);
    std::uint32_t stream(std::int64_t globalProcess, std::int64_t device, std::int64_t stream);
    /// Correlation numbers are unique only within a process; this makes them globally unique.
    std::uint32_t correlation(std::int64_t global, std::int64_t number);

    const std::string& name(std::int64_t id);             ///< text of StringIds; "?" when missing
    std::uint32_t nameId(std::optional<std::int64_t> id); ///< likewise, as an id in the trace's strings

    /// Names the lanes and gives processes their ranks: from `known` (rank, ranks) if it covers them, else by their
    /// first device.
    void finish(const std::map<std::int64_t, std::pair<int, int>>& known);

private:
    SQLite::Database& m_database;
    TraceData& m_data;
    std::optional<SQLite::Statement> m_lookUp;
    std::unordered_map<std::int64_t, std::uint32_t> m_names;
    std::unordered_map<std::int64_t, std::uint32_t> m_threads;
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::uint32_t> m_streams;
    std::map<std::int64_t, int> m_deviceOfProcess; ///< the lowest that it used
    std::optional<std::int64_t> m_firstProcess;
    std::unordered_map<std::uint64_t, std::uint32_t> m_correlations;
    std::int64_t m_lastThread = -1;
    std::uint32_t m_lastThreadLane = 0;
};

} // namespace pipewright
