// SPDX-License-Identifier: GPL-3.0-or-later
// A table whose columns vary: missing columns read as null, and a missing table has no rows. Newer exports put a
// version behind the name of a table whose columns changed ("NVTX_EVENTS_V2"); the latest is read where the bare name
// is missing.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pipewright {

class NsightTable {
public:
    /// Each wanted column may name alternatives, "shortName|demangledName"; the first that exists is read.
    NsightTable(SQLite::Database& database, const std::string& name, std::initializer_list<const char*> wanted);
    bool exists() const { return m_query.has_value(); }
    const std::string& name() const { return m_name; } ///< as the export has it
    bool next();
    std::int64_t row() const { return m_row; }             ///< counted from 1, for messages
    std::optional<std::int64_t> integer(int column) const; ///< nothing for null and for text
    std::int64_t integerOr(int column, std::int64_t otherwise) const { return integer(column).value_or(otherwise); }
    std::optional<double> number(int column) const;
    std::optional<std::string> text(int column) const; ///< only where text is stored
    std::string blob(int column) const;

private:
    std::string m_name;
    std::optional<SQLite::Statement> m_query;
    std::int64_t m_row = 0;
};

/// The tables of events, which have a start and an end, that hold rows and are not in `read`, each with what it holds:
/// "CUBLAS_EVENTS (12 rows, 3.1 ms)". O(rows) of those tables.
std::vector<std::string> tablesNotRead(SQLite::Database& database, const std::set<std::string>& read);

} // namespace pipewright
