// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/import/nsighttable.h"

#include <set>
#include <sstream>

namespace pipewright {

NsightTable::NsightTable(SQLite::Database& database, const std::string& name, std::initializer_list<const char*> wanted)
    : m_name(name)
{
    std::set<std::string> columns;
    SQLite::Statement info(database, "SELECT name FROM pragma_table_info(?1)");
    info.bind(1, name);
    while (info.executeStep())
        columns.insert(info.getColumn(0).getString());
    if (columns.empty())
        return;
    std::string select;
    for (const char* alternatives : wanted) {
        std::string found = "NULL";
        std::istringstream stream(alternatives);
        for (std::string column; std::getline(stream, column, '|');)
            if (columns.contains(column)) {
                found = '"' + column + '"';
                break;
            }
        select += (select.empty() ? "" : ", ") + found;
    }
    m_query.emplace(database, "SELECT " + select + " FROM \"" + name + "\"");
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

} // namespace pipewright
