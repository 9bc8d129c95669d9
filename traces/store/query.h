// SPDX-License-Identifier: GPL-3.0-or-later
// Read-only SQL over a trace: the database is opened read-only, and statements that write, attach files or load
// extensions are refused before they run. A statement that exceeds the time or memory limit is ended with an error.
#pragma once

#include "traces/store/progress.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace pipewright {

/// null, a whole number, a number, text, or the length of a blob.
struct QueryBlob {
    std::int64_t bytes = 0;
};
using QueryValue = std::variant<std::monostate, std::int64_t, double, std::string, QueryBlob>;

struct QueryResult {
    std::vector<std::string> columns;
    std::vector<std::vector<QueryValue>> rows;
    bool cut = false; ///< there are more rows than were asked for
};

struct QueryLimits {
    std::size_t rows = 1000;
    std::chrono::nanoseconds time = std::chrono::minutes(1);
    std::int64_t bytes = std::int64_t{1} << 30; ///< of memory that SQLite and the result may each take
};

/// `path` is a trace or any SQLite file, such as an Nsight export. One statement. Throws Error with SQLite's message.
/// `progress` can stop it; it is called from another thread, and its fraction has no meaning.
QueryResult queryTrace(const std::string& path, const std::string& sql, const QueryLimits& limits = {},
                       const WorkProgress& progress = {});

struct TableShape {
    std::string name;
    std::vector<std::string> columns; ///< "start INTEGER"
    std::int64_t rows = 0;
};
std::vector<TableShape> schemaOf(const std::string& path);

} // namespace pipewright
