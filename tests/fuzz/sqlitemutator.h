// SPDX-License-Identifier: GPL-3.0-or-later
// A mutator that knows SQLite: random bytes mostly make a file that is no database. It opens the input as one in memory
// and changes a value, a row, a table or its schema with SQL, which leaves a database that is whole and wrong.
#pragma once

#include "structured.h"

#include <sqlite3.h>

#include <memory>

namespace pipewright::fuzz {

namespace databases {

using Open = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

inline std::vector<std::string> texts(sqlite3* database, const std::string& query)
{
    std::vector<std::string> found;
    sqlite3_stmt* row = nullptr;
    if (sqlite3_prepare_v2(database, query.c_str(), -1, &row, nullptr) == SQLITE_OK)
        while (found.size() < 1000 && sqlite3_step(row) == SQLITE_ROW)
            if (const auto* text = sqlite3_column_text(row, 0); text != nullptr)
                found.emplace_back(reinterpret_cast<const char*>(text));
    sqlite3_finalize(row);
    return found;
}

inline std::string quoted(const std::string& name)
{
    std::string text = "\"";
    for (const char c : name)
        text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return text + '"';
}

/// One change as SQL; empty: there is nothing to change.
inline std::string change(sqlite3* database, Random& random)
{
    const auto any = [&](const std::vector<std::string>& list) { return quoted(list[below(random, list.size())]); };
    const std::vector<std::string> tables =
        texts(database, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
    if (tables.empty())
        return {};
    const std::string table = any(tables);
    const std::vector<std::string> columns = texts(database, "SELECT name FROM pragma_table_info(" + table + ")");
    if (columns.empty())
        return {};
    const std::string column = any(columns), other = any(columns);
    const std::string where =
        " WHERE rowid = (SELECT rowid FROM " + table + " LIMIT 1 OFFSET " + std::to_string(below(random, 40)) + ")";
    const char* const edges[] = {"NULL",
                                 "0",
                                 "-1",
                                 "1",
                                 "9223372036854775807",
                                 "-9223372036854775808",
                                 "1e308",
                                 "''",
                                 "'{}'",
                                 "zeroblob(40)",
                                 "x'ff00'",
                                 "'9'",
                                 "4294967296",
                                 "'\x1b[2J'",
                                 "0.5"};
    switch (below(random, 9)) {
    case 0:
    case 1:
    case 2: return "UPDATE " + table + " SET " + column + " = " + edges[below(random, std::size(edges))] + where;
    case 3: return "UPDATE " + table + " SET " + column + " = " + other + where;
    case 4: return "DELETE FROM " + table + (below(random, 4) == 0 ? std::string() : where);
    case 5: return "INSERT OR REPLACE INTO " + table + " SELECT * FROM " + table + where;
    case 6: return "ALTER TABLE " + table + " RENAME COLUMN " + column + " TO other";
    case 7: return "DROP TABLE " + table;
    default:
        return "ALTER TABLE " + table + " RENAME TO mine; CREATE VIEW " + table
               + " AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT mine.* FROM mine, n";
    }
}

} // namespace databases

inline std::size_t mutateDatabase(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    Random random(seed + 4);
    if (size < 512 || below(random, 4) == 0)
        return LLVMFuzzerMutate(data, size, most);
    sqlite3* handle = nullptr;
    sqlite3_open(":memory:", &handle);
    const databases::Open database(handle, sqlite3_close);
    auto* const copy = static_cast<unsigned char*>(sqlite3_malloc64(size));
    std::memcpy(copy, data, size);
    copy[18] = copy[19] = 1; // no write-ahead log, which memory does not have
    sqlite3_deserialize(handle, "main", copy, static_cast<sqlite3_int64>(size), static_cast<sqlite3_int64>(size),
                        SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    const std::string sql = databases::change(handle, random);
    if (sql.empty() || sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        return LLVMFuzzerMutate(data, size, most);
    sqlite3_int64 length = 0;
    unsigned char* const bytes = sqlite3_serialize(handle, "main", &length, 0);
    const std::unique_ptr<unsigned char, void (*)(void*)> owned(bytes, sqlite3_free);
    return replaceBy(bytes == nullptr
                         ? std::string()
                         : std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length)),
                     data, size, most);
}

} // namespace pipewright::fuzz
