// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/importreport.h"

namespace pipewright {

void ImportReport::count(const std::string& reason, const Entry& more)
{
    if (more.count <= 0)
        return;
    const auto [entry, isNew] = m_entries.try_emplace(reason, more);
    if (!isNew)
        entry->second.count += more.count;
}

void ImportReport::lose(const std::string& reason, const std::string& example, std::int64_t times)
{
    count(reason, {times, example, true});
}

void ImportReport::repair(const std::string& reason, const std::string& example, std::int64_t times)
{
    count(reason, {times, example, false});
}

void ImportReport::warn(const std::string& what, const std::string& example)
{
    count(what, {1, example, false, true});
}

void ImportReport::add(const ImportReport& other)
{
    read += other.read;
    kept += other.kept;
    for (const auto& [reason, entry] : other.m_entries)
        count(reason, entry);
}

std::int64_t ImportReport::lost() const
{
    std::int64_t total = 0;
    for (const auto& [reason, entry] : m_entries)
        total += entry.lost ? entry.count : 0;
    return total;
}

Diagnostics ImportReport::diagnostics(const std::string& source) const
{
    Diagnostics result;
    for (const auto& [reason, entry] : m_entries) {
        const std::string hint = entry.example.empty() || entry.warning ? entry.example : "first: " + entry.example;
        const std::string counted = std::to_string(entry.count) + (entry.lost ? " left out: " : " repaired: ");
        result.push_back({entry.lost || entry.warning ? Severity::Warning : Severity::Note, source,
                          (entry.warning ? "" : counted) + reason, hint});
    }
    return result;
}

} // namespace pipewright
