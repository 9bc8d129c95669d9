// SPDX-License-Identifier: GPL-3.0-or-later
// An SQLite authorizer admits reading only; a thread stops long statements, SQLite's heap limit large ones.
#include "traces/store/query.h"

#include "core/base/units.h"
#include "traces/store/database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace pipewright {

namespace {

/// Reading, functions and recursion; no writing, attaching, transactions or settings. load_extension is a function.
int authorise(void*, int action, const char* first, const char* second, const char*, const char*)
{
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION: return second && std::string(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA: return first && std::string(first) == "table_info" ? SQLITE_OK : SQLITE_DENY;
    default: return SQLITE_DENY;
    }
}

/// Interrupts a long statement from another thread: SQLite calls no progress handler while count(*) follows the pages
/// of a file, and in a damaged file these pages can form a cycle.
class Watch {
public:
    using Clock = std::chrono::steady_clock;

    Watch(sqlite3* handle, const WorkProgress& progress, std::chrono::nanoseconds limit)
        : m_thread(
            [this, handle, &progress, until = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit)] {
                std::unique_lock lock(m_mutex);
                do {
                    m_cancelled = m_cancelled || (progress.report && !progress.report(0));
                    if (m_cancelled || Clock::now() >= until)
                        sqlite3_interrupt(handle); // again and again: one that comes before a statement begins is lost
                    const auto soon = Clock::now() + std::chrono::milliseconds(50);
                    m_done.wait_until(lock, until > Clock::now() ? std::min(until, soon) : soon);
                } while (!m_isDone);
            })
    {
    }
    ~Watch()
    {
        {
            const std::lock_guard lock(m_mutex);
            m_isDone = true;
        }
        m_done.notify_one();
        m_thread.join();
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    bool cancelled() const { return m_cancelled; }

private:
    std::mutex m_mutex;
    std::condition_variable m_done;
    bool m_isDone = false;
    std::atomic<bool> m_cancelled{false};
    std::thread m_thread; ///< last: it uses the others
};

/// SQLite counts the memory of a process, so the limit holds for all of its connections while this lives.
class HeapLimit {
public:
    explicit HeapLimit(std::int64_t bytes) : m_before(sqlite3_hard_heap_limit64(bytes)) {}
    ~HeapLimit() { sqlite3_hard_heap_limit64(m_before); }
    HeapLimit(const HeapLimit&) = delete;
    HeapLimit& operator=(const HeapLimit&) = delete;

private:
    sqlite3_int64 m_before;
};

std::int64_t bytesOf(const QueryValue& value)
{
    const auto* text = std::get_if<std::string>(&value);
    return static_cast<std::int64_t>(sizeof value + (text ? text->size() : 0));
}

QueryValue valueOf(sqlite3_stmt* statement, int column)
{
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
    case SQLITE_TEXT:
        return std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, column)),
                           static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    case SQLITE_BLOB: return QueryBlob{sqlite3_column_bytes(statement, column)};
    default: return {};
    }
}

bool isBlank(const char* text)
{
    for (; *text != '\0'; ++text)
        if (!std::isspace(static_cast<unsigned char>(*text)) && *text != ';')
            return false;
    return true;
}

} // namespace

QueryResult queryTrace(const std::string& path, const std::string& sql, const QueryLimits& limits,
                       const WorkProgress& progress)
try {
    const HeapLimit heap(limits.bytes);
    SQLite::Database database = openReadOnly(path);
    sqlite3* const handle = database.getHandle();
    sqlite3_set_authorizer(handle, authorise, nullptr);
    sqlite3_progress_handler(handle, 0, nullptr, nullptr); // a query has the limits that it is given
    const Watch watch(handle, progress, limits.time);
    const auto tooLarge = [&] {
        throw Error("query", "the statement needs more than " + formatSize(limits.bytes) + " of memory",
                    "raise --memory-limit, or ask for less");
    };
    const auto fail = [&](int code) {
        if (code == SQLITE_INTERRUPT && watch.cancelled())
            throw Error(path, "cancelled");
        if (code == SQLITE_INTERRUPT)
            throw Error("query", "stopped after " + formatDuration(limits.time.count()),
                        "raise --time-limit, or ask for less");
        if (code == SQLITE_NOMEM)
            tooLarge();
        if (code == SQLITE_AUTH)
            throw Error("query", std::string("only reading is allowed: ") + sqlite3_errmsg(handle),
                        "begin with SELECT or WITH");
        throw Error("query", sqlite3_errmsg(handle), "the tables are shown by --schema");
    };
    sqlite3_stmt* raw = nullptr;
    const char* rest = nullptr;
    if (const int code = sqlite3_prepare_v2(handle, sql.c_str(), static_cast<int>(sql.size()) + 1, &raw, &rest);
        code != SQLITE_OK)
        fail(code);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
    if (!raw)
        throw Error("query", "there is no statement", "for example \"SELECT count(*) FROM RECORDS\"");
    if (!isBlank(rest))
        throw Error("query", "more than one statement", "ask one after the other");
    QueryResult result;
    const int columns = sqlite3_column_count(raw);
    for (int i = 0; i < columns; ++i)
        result.columns.emplace_back(sqlite3_column_name(raw, i));
    std::int64_t bytes = 0;
    int code = sqlite3_step(raw);
    for (; code == SQLITE_ROW; code = sqlite3_step(raw)) {
        if (result.rows.size() == limits.rows) {
            result.cut = true;
            return result;
        }
        std::vector<QueryValue>& row = result.rows.emplace_back();
        for (int i = 0; i < columns; ++i)
            bytes += bytesOf(row.emplace_back(valueOf(raw, i)));
        if (bytes > limits.bytes)
            tooLarge();
    }
    if (code != SQLITE_DONE)
        fail(code);
    return result;
} catch (const SQLite::Exception& error) {
    rethrowTraceError(path, error);
}

std::vector<TableShape> schemaOf(const std::string& path)
try {
    SQLite::Database database = openReadOnly(path);
    std::vector<TableShape> tables;
    SQLite::Statement names(
        database, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name");
    while (names.executeStep()) {
        TableShape table;
        table.name = names.getColumn(0).getString();
        SQLite::Statement columns(database, "SELECT name, type FROM pragma_table_info(?1)");
        columns.bind(1, table.name);
        while (columns.executeStep()) {
            const std::string type = columns.getColumn(1).getString();
            table.columns.push_back(columns.getColumn(0).getString() + (type.empty() ? "" : " " + type));
        }
        std::string quoted;
        for (const char c : table.name)
            quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
        // Not count(*), which cannot be interrupted by a handler (see Watch); this counts row by row.
        table.rows = database.execAndGet("SELECT count(1) FROM \"" + quoted + "\"").getInt64();
        tables.push_back(std::move(table));
    }
    return tables;
} catch (const SQLite::Exception& error) {
    rethrowTraceError(path, error);
}

} // namespace pipewright
