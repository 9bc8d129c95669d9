// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/importreport.h"

namespace pipewright {

void ImportReport::count(const std::string& reason, const std::string& example, std::int64_t count, bool lost)
{
    if (count <= 0)
        return;
    Entry& entry = m_entries[reason];
    if (entry.count == 0) {
        entry.example = example;
        entry.lost = lost;
    }
    entry.count += count;
}

void ImportReport::lose(const std::string& reason, const std::string& example, std::int64_t times)
{
    count(reason, example, times, true);
}

void ImportReport::repair(const std::string& reason, const std::string& example, std::int64_t times)
{
    count(reason, example, times, false);
}

void ImportReport::add(const ImportReport& other)
{
    read += other.read;
    kept += other.kept;
    for (const auto& [reason, entry] : other.m_entries)
        count(reason, entry.example, entry.count, entry.lost);
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
    for (const auto& [reason, entry] : m_entries)
        result.push_back({entry.lost ? Severity::Warning : Severity::Note, source,
                          std::to_string(entry.count) + (entry.lost ? " left out: " : " repaired: ") + reason,
                          entry.example.empty() ? std::string() : "first: " + entry.example});
    return result;
}

} // namespace pipewright
