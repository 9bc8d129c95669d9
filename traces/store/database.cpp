// SPDX-License-Identifier: GPL-3.0-or-later
// Opens traces and checks application id and schema. Recovery of a killed run is SQLite's: the write-ahead log beside
// the file is replayed by the next reader.
#include "traces/store/database.h"

#include "core/base/diagnostic.h"
#include "traces/store/schema.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <filesystem>

namespace pipewright {

namespace {

constexpr int busyTimeoutMs = 500;      // a program that is asked answers within a second, its start included
constexpr int longestValue = 256 << 20; // bytes; chunks of our own traces have a few MiB

/// A file from elsewhere gives the rows of its tables and nothing else: views, triggers and functions in its schema
/// are programs, which could run forever.
SQLite::Database onlyTables(SQLite::Database database)
{
    sqlite3* const handle = database.getHandle();
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, longestValue);
    return database;
}

/// Throws unless this is a trace of a known schema.
void checkSchema(SQLite::Database& database, const std::string& path)
{
    if (database.execAndGet("PRAGMA application_id").getInt() != traceschema::applicationId) {
        const bool empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
        throw Error(path,
                    empty ? "this is no Pipewright trace: an empty file"
                          : "this is no Pipewright trace: a database of another program",
                    "traces are written by `pipewright run … -o TRACE` and by `pipewright import`");
    }
    const int found = database.execAndGet("PRAGMA user_version").getInt();
    if (found > traceschema::version)
        throw Error(path,
                    "the trace has schema version " + std::to_string(found) + "; this program reads up to "
                        + std::to_string(traceschema::version),
                    "update Pipewright");
}

} // namespace

std::vector<std::string> databaseCompanions()
{
    return {"-journal", "-wal", "-shm"};
}

void rethrowIfLocked(const std::string& path, const SQLite::Exception& error)
{
    if (error.getErrorCode() == SQLITE_BUSY)
        rethrowTraceError(path, error);
}

void rethrowTraceError(const std::string& path, const SQLite::Exception& error)
{
    switch (error.getErrorCode()) {
    case SQLITE_NOTADB:
        throw Error(path, "this is no Pipewright trace: not a database",
                    "traces are written by `pipewright run … -o TRACE`");
    case SQLITE_CORRUPT:
        throw Error(path, "the trace is damaged or was cut short",
                    "record it again, or copy it again whole, together "
                    "with its -wal file when the run is still going on");
    case SQLITE_BUSY:
        throw Error(path, "another program has locked the trace", "try again when it is done, or copy the file");
    default: throw Error(path, std::string("cannot read the trace: ") + error.what());
    }
}

/// In a read-only folder SQLite cannot create its log index, so a finished trace is opened as immutable.
SQLite::Database openReadOnly(const std::string& path)
{
    if (!std::filesystem::exists(path))
        throw Error(path, "there is no such trace", "record one with `pipewright run … -o " + path + "`");
    if (!std::filesystem::is_regular_file(path))
        throw Error(path, "this is no Pipewright trace: not a file");
    for (const std::string& ending : databaseCompanions()) // SQLite would wait for who writes to a pipe
        if (std::filesystem::exists(path + ending) && !std::filesystem::is_regular_file(path + ending))
            throw Error(path + ending, "is not a regular file, and lies where the trace's own would", "move it away");
    const int flags = SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX;
    SQLite::Database database = onlyTables(SQLite::Database(path, flags, busyTimeoutMs));
    try {
        database.execAndGet("PRAGMA schema_version");
        return database;
    } catch (const SQLite::Exception& error) {
        const bool closed = error.getErrorCode() == SQLITE_CANTOPEN || error.getErrorCode() == SQLITE_READONLY;
        if (!closed || std::filesystem::exists(path + "-wal"))
            throw;
    }
    std::string uri = "file:";
    for (const char c : std::filesystem::absolute(path).string()) {
        if (c == '?' || c == '#' || c == '%') {
            constexpr char digits[] = "0123456789ABCDEF";
            uri += {'%', digits[(c >> 4) & 15], digits[c & 15]};
        } else {
            uri += c;
        }
    }
    return onlyTables(SQLite::Database(uri + "?immutable=1", flags | SQLite::OPEN_URI, busyTimeoutMs));
}

SQLite::Database openTraceDatabase(const std::string& path)
{
    SQLite::Database database = openReadOnly(path);
    checkSchema(database, path);
    return database;
}

} // namespace pipewright
