// SPDX-License-Identifier: GPL-3.0-or-later
// SQL over a trace, for reading only: the database is opened read-only and every statement that would change
// anything, attach another file or call into the system is refused before it runs.
#pragma once

#include "traces/store/progress.h"

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

/// `path` is a trace of ours or any SQLite file (an export of Nsight, say). One statement. Throws Error with what
/// SQLite says of it. `progress` is asked now and then whether to go on; its fraction says nothing.
QueryResult queryTrace(const std::string& path, const std::string& sql, std::size_t rowLimit,
                       const WorkProgress& progress = {});

struct TableShape {
    std::string name;
    std::vector<std::string> columns; ///< "start INTEGER"
    std::int64_t rows = 0;
};
std::vector<TableShape> schemaOf(const std::string& path);

} // namespace pipewright
