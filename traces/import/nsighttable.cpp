// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/import/nsighttable.h"

#include "core/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace pipewright {

namespace {

std::string identifier(const std::string& name)
{
    std::string text = "\"";
    for (const char c : name)
        text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return text + '"';
}

std::set<std::string> columnsOf(SQLite::Database& database, const std::string& table)
{
    std::set<std::string> columns;
    SQLite::Statement info(database, "SELECT name FROM pragma_table_info(?1)");
    info.bind(1, table);
    while (info.executeStep())
        columns.insert(info.getColumn(0).getString());
    return columns;
}

/// The name itself, if there is such a table, else that of its latest version.
std::string latestOf(SQLite::Database& database, const std::string& name)
{
    SQLite::Statement versions(database, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND (name = "
                                         "?1 OR name GLOB ?1 || '_V[0-9]*') ORDER BY name <> ?1, length(name) DESC, "
                                         "name DESC LIMIT 1");
    versions.bind(1, name);
    return versions.executeStep() ? versions.getColumn(0).getString() : name;
}

} // namespace

NsightTable::NsightTable(SQLite::Database& database, const std::string& name, std::initializer_list<const char*> wanted)
    : m_name(latestOf(database, name))
{
    const std::set<std::string> columns = columnsOf(database, m_name);
    if (columns.empty())
        return;
    std::string select;
    for (const char* alternatives : wanted) {
        std::string found = "NULL";
        std::istringstream stream(alternatives);
        for (std::string column; std::getline(stream, column, '|');)
            if (columns.contains(column)) {
                found = identifier(column);
                break;
            }
        select += (select.empty() ? "" : ", ") + found;
    }
    m_query.emplace(database, "SELECT " + select + " FROM " + identifier(m_name));
}

bool NsightTable::next()
{
    if (!m_query || !m_query->executeStep())
        return false;
    ++m_row;
    return true;
}

std::optional<std::int64_t> NsightTable::integer(int column) const
{
    const SQLite::Column value = const_cast<SQLite::Statement&>(*m_query).getColumn(column);
    return value.isInteger() ? std::optional(value.getInt64()) : std::nullopt;
}

std::optional<double> NsightTable::number(int column) const
{
    const SQLite::Column value = const_cast<SQLite::Statement&>(*m_query).getColumn(column);
    return value.isInteger() || value.isFloat() ? std::optional(value.getDouble()) : std::nullopt;
}

std::optional<std::string> NsightTable::text(int column) const
{
    const SQLite::Column value = const_cast<SQLite::Statement&>(*m_query).getColumn(column);
    return value.isText() ? std::optional(value.getString()) : std::nullopt;
}

std::string NsightTable::blob(int column) const
{
    const SQLite::Column value = const_cast<SQLite::Statement&>(*m_query).getColumn(column);
    if (!value.isBlob())
        return {};
    return {static_cast<const char*>(value.getBlob()), static_cast<std::size_t>(value.getBytes())};
}

std::vector<std::string> tablesNotRead(SQLite::Database& database, const std::set<std::string>& read)
{
    std::vector<std::string> names, found;
    SQLite::Statement all(database, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    while (all.executeStep())
        names.push_back(all.getColumn(0).getString());
    for (const std::string& name : names) {
        const std::set<std::string> columns = columnsOf(database, name);
        if (read.contains(name) || !columns.contains("start") || !columns.contains("end"))
            continue;
        SQLite::Statement held(database, "SELECT count(*), total(max(0, end - start)) FROM " + identifier(name));
        if (held.executeStep() && held.getColumn(0).getInt64() > 0)
            found.push_back(fmt::format("{} ({} rows, {})", name, held.getColumn(0).getInt64(),
                                        formatDuration(std::llround(std::min(held.getColumn(1).getDouble(), 1e18)))));
    }
    return found;
}

} // namespace pipewright
