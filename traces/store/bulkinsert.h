// SPDX-License-Identifier: GPL-3.0-or-later
// Fast insertion of integer rows into a SQLite table: several rows per statement, bound in place. More than a million
// rows a second; see tests/bench/bench_traces.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace pipewright {

/// Throws Error (where = `path`) with what the database says.
[[noreturn]] void throwDatabaseError(sqlite3* database, const std::string& path);

class BulkInsert {
public:
    static constexpr std::int64_t null = std::numeric_limits<std::int64_t>::min();

    /// Creates the table `name` with these columns, all of them INTEGER.
    BulkInsert(sqlite3* database, std::string path, const std::string& name, std::span<const char* const> columns);
    /// Into a table that is there; `insert` is the statement up to its values: "INSERT OR REPLACE INTO RECORDS".
    BulkInsert(sqlite3* database, std::string path, const std::string& insert, std::size_t columns);
    BulkInsert(const BulkInsert&) = delete;
    BulkInsert& operator=(const BulkInsert&) = delete;
    ~BulkInsert();

    /// As many values as there are columns. Returns the number of the row, counted from 1; it is in the table after the
    /// next flush(). Throws Error.
    std::int64_t add(std::span<const std::int64_t> values)
    {
        m_waiting.insert(m_waiting.end(), values.begin(), values.end());
        if (m_waiting.size() == m_columns * rowsPerStatement)
            insertMany();
        return ++m_rows;
    }
    std::int64_t add(std::initializer_list<std::int64_t> values)
    {
        return add(std::span(values.begin(), values.size()));
    }
    void flush(); ///< Throws Error.

private:
    static constexpr std::size_t rowsPerStatement = 40;
    void prepare(const std::string& insert);
    void insertMany();
    void insert(sqlite3_stmt* statement, const std::int64_t* values, std::size_t count);

    sqlite3* m_database;
    std::string m_path;
    std::size_t m_columns;
    sqlite3_stmt *m_one = nullptr, *m_many = nullptr;
    std::vector<std::int64_t> m_waiting;
    std::int64_t m_rows = 0;
};

} // namespace pipewright
