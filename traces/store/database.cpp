// SPDX-License-Identifier: GPL-3.0-or-later
// Opens traces and checks application id and schema.
#include "traces/store/database.h"

#include "core/base/diagnostic.h"
#include "core/base/inputfile.h"
#include "traces/store/schema.h"
#include "traces/store/tracerecovery.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>

namespace pipewright {

namespace {

constexpr int busyTimeoutMs = 500;      // commands must answer within a second, including their start
constexpr int longestValue = 256 << 20; // bytes; chunks of our own traces have a few MiB

/// The limit of SQLite virtual machine instructions per statement: reading a row takes about ten, and a row has about
/// ten bytes. Joins without indexes take more, for example in a file whose indexes were removed.
constexpr std::int64_t leastWork = 10'000'000, workPerByte = 64;
constexpr int workBetweenLooks = 100'000;

/// The work of the running statement in SQLite instructions; a time limit would depend on the machine.
struct Work {
    sqlite3* handle = nullptr;
    std::int64_t taken = 0;

    static int begin(unsigned, void* work, void*, void*)
    {
        static_cast<Work*>(work)->taken = 0;
        return 0;
    }
    static int look(void* work)
    {
        auto* const own = static_cast<Work*>(work);
        own->taken += workBetweenLooks;
        return own->taken > leastWork && own->taken > leastWork + workPerByte * own->bytes() ? 1 : 0;
    }
    static void release(void* work) { delete static_cast<Work*>(work); }

    /// The present size of the file, which may be growing. Most statements end before it is needed.
    std::int64_t bytes() const
    {
        const char* const path = sqlite3_db_filename(handle, "main");
        const bool isFile = path != nullptr && *path != '\0';
        std::int64_t sum = 0;
        for (const char* file : {path, isFile ? sqlite3_filename_wal(path) : nullptr}) {
            std::error_code none;
            const auto size = file != nullptr && *file != '\0' ? std::filesystem::file_size(file, none) : 0;
            sum += none ? 0 : static_cast<std::int64_t>(std::min<std::uintmax_t>(size, std::uintmax_t{1} << 50));
        }
        return sum;
    }
};

void limitWork(sqlite3* handle)
{
    auto work = std::make_unique<Work>(Work{handle, 0});
    sqlite3_trace_v2(handle, SQLITE_TRACE_STMT, Work::begin, work.get());
    sqlite3_progress_handler(handle, workBetweenLooks, Work::look, work.get());
    // A closed connection frees the data of its functions. This function is never called; its data is freed even when
    // creating it fails.
    const auto nothing = [](sqlite3_context*, int, sqlite3_value**) {};
    if (sqlite3_create_function_v2(handle, "pipewright_work", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, work.release(),
                                   nothing, nullptr, nullptr, Work::release)
        != SQLITE_OK)
        throw std::bad_alloc();
}

/// Throws unless this is a trace of a known schema.
void checkSchema(SQLite::Database& database, const std::string& path)
{
    if (database.execAndGet("PRAGMA application_id").getInt() != traceschema::applicationId) {
        const bool empty = database.execAndGet("SELECT count(1) FROM sqlite_master").getInt() == 0;
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

void limitDatabase(SQLite::Database& database)
{
    sqlite3* const handle = database.getHandle();
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, longestValue);
    limitWork(handle);
}

void refusePrograms(SQLite::Database& database)
{
    const auto refuse = [&](const SQLite::Statement& found, const char* what) {
        throw Error(database.getFilename(), inQuotes(found.getColumn(0).getText()) + what,
                    "a file may hold plain tables; copy the rows that matter into a new one");
    };
    // SQLite stores every table definition with these words. Other definitions are not ordinary tables; even reading
    // their columns would start their modules.
    SQLite::Statement modules(database,
                              "SELECT name FROM sqlite_master WHERE sql NOT LIKE 'CREATE TABLE %' AND sql NOT "
                              "LIKE 'CREATE INDEX %' AND sql NOT LIKE 'CREATE UNIQUE INDEX %' AND sql NOT "
                              "LIKE 'CREATE VIEW %' AND sql NOT LIKE 'CREATE TRIGGER %' LIMIT 1");
    if (modules.executeStep())
        refuse(modules, " is no table: a module of SQLite would run in its place");
    // Uses the names that SQLite parsed from the definitions: the name columns of sqlite_master are not trusted.
    SQLite::Statement columns(database, "SELECT t.name || '.' || x.name FROM pragma_table_list AS t, "
                                        "pragma_table_xinfo(t.name) AS x WHERE t.schema = 'main' AND t.type = 'table' "
                                        "AND x.hidden <> 0 LIMIT 1");
    if (columns.executeStep())
        refuse(columns, " is a generated column: a formula would run for every row");
}

std::int64_t storedTime(std::int64_t said)
{
    constexpr std::int64_t longest = std::int64_t{1} << 61;
    return std::clamp(said, -longest, longest);
}

std::int64_t storedTime(const SQLite::Column& column)
{
    return storedTime(column.getInt64());
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
    case SQLITE_INTERRUPT:
        throw Error(path, "reading it takes far more work than its size explains, and was ended",
                    "it was made to do so, or its indexes were removed; record it again");
    default: throw Error(path, std::string("cannot read the trace: ") + error.what());
    }
}

/// In a read-only folder SQLite cannot create its log index, so a finished trace is opened as immutable.
SQLite::Database openReadOnly(const std::string& path)
{
    std::error_code unknown; // then it is no regular file
    if (!pathExists(path))
        throw Error(path, "there is no such trace", "record one with `pipewright run … -o " + path + "`");
    if (!std::filesystem::is_regular_file(path, unknown))
        throw Error(path, "this is no Pipewright trace: not a file");
    for (const std::string& ending : databaseCompanions()) // SQLite would wait for who writes to a pipe
        if (pathExists(path + ending) && !std::filesystem::is_regular_file(path + ending, unknown))
            throw Error(path + ending, "is not a regular file, and lies where the trace's own would", "move it away");
    const int flags = SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX;
    SQLite::Database database(path, flags, busyTimeoutMs);
    limitDatabase(database);
    try {
        database.execAndGet("PRAGMA schema_version");
        refusePrograms(database);
        return database;
    } catch (const SQLite::Exception& error) {
        const bool closed = error.getErrorCode() == SQLITE_CANTOPEN || error.getErrorCode() == SQLITE_READONLY;
        if (!closed || pathExists(path + "-wal"))
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
    SQLite::Database immutable(uri + "?immutable=1", flags | SQLite::OPEN_URI, busyTimeoutMs);
    limitDatabase(immutable);
    refusePrograms(immutable);
    return immutable;
}

SQLite::Database openTraceDatabase(const std::string& path)
{
    SQLite::Database database = openReadOnly(path);
    checkSchema(database, path);
    return database;
}

} // namespace pipewright
