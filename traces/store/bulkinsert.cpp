// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/bulkinsert.h"

#include "core/base/diagnostic.h"
#include "traces/store/database.h"

#include <sqlite3.h>

#include <utility>

namespace pipewright {

void throwDatabaseError(sqlite3* database, const std::string& path)
{
    throw Error(path, std::string("cannot write the trace: ") + sqlite3_errmsg(database), writingHint);
}

BulkInsert::BulkInsert(sqlite3* database, std::string path, const std::string& name,
                       std::span<const char* const> columns)
    : m_database(database), m_path(std::move(path)), m_columns(columns.size())
{
    std::string create;
    for (const char* column : columns)
        create += (create.empty() ? "" : ", ") + std::string(column) + " INTEGER";
    create = "CREATE TABLE " + name + " (" + create + ")";
    if (sqlite3_exec(database, create.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        throwDatabaseError(database, m_path);
    prepare("INSERT INTO " + name);
}

BulkInsert::BulkInsert(sqlite3* database, std::string path, const std::string& insert, std::size_t columns)
    : m_database(database), m_path(std::move(path)), m_columns(columns)
{
    prepare(insert);
}

void BulkInsert::prepare(const std::string& insert)
{
    std::string places = "(?";
    for (std::size_t i = 1; i < m_columns; ++i)
        places += ", ?";
    places += ')';
    const std::string one = insert + " VALUES " + places;
    std::string many = one;
    for (std::size_t row = 1; row < rowsPerStatement; ++row)
        many += ", " + places;
    if (sqlite3_prepare_v2(m_database, one.c_str(), -1, &m_one, nullptr) != SQLITE_OK
        || sqlite3_prepare_v2(m_database, many.c_str(), -1, &m_many, nullptr) != SQLITE_OK)
        throwDatabaseError(m_database, m_path);
    m_waiting.reserve(m_columns * rowsPerStatement);
}

BulkInsert::~BulkInsert()
{
    sqlite3_finalize(m_one);
    sqlite3_finalize(m_many);
}

void BulkInsert::insert(sqlite3_stmt* statement, const std::int64_t* values, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        if (values[i] == null)
            sqlite3_bind_null(statement, static_cast<int>(i + 1));
        else
            sqlite3_bind_int64(statement, static_cast<int>(i + 1), values[i]);
    const int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    if (result != SQLITE_DONE)
        throwDatabaseError(m_database, m_path);
}

void BulkInsert::insertMany()
{
    insert(m_many, m_waiting.data(), m_waiting.size());
    m_waiting.clear();
}

void BulkInsert::flush()
{
    for (std::size_t at = 0; at < m_waiting.size(); at += m_columns)
        insert(m_one, m_waiting.data() + at, m_columns);
    m_waiting.clear();
}

} // namespace pipewright
