// SPDX-License-Identifier: GPL-3.0-or-later
// Counts of imported, repaired and skipped records by reason, each with its first place. Every skipped record is
// counted; the store keeps the counts and the command line prints them. Warnings about a whole trace are kept too.
#pragma once

#include "core/base/diagnostic.h"

#include <cstdint>
#include <map>
#include <string>

namespace pipewright {

class ImportReport {
public:
    struct Entry {
        std::int64_t count = 0;
        std::string example;  ///< "event 17", "NVTX_EVENTS row 3"
        bool lost = true;     ///< false: imported, but repaired or changed
        bool warning = false; ///< nothing was changed, but the trace may be wrong
    };

    std::int64_t read = 0; ///< records seen
    std::int64_t kept = 0;

    void lose(const std::string& reason, const std::string& example, std::int64_t count = 1);
    void repair(const std::string& reason, const std::string& example, std::int64_t count = 1);
    void warn(const std::string& what, const std::string& example);
    void add(const ImportReport& other);
    std::int64_t lost() const;
    const std::map<std::string, Entry>& entries() const { return m_entries; }

    /// A warning per reason that lost something and per doubt, a note per repair.
    Diagnostics diagnostics(const std::string& source) const;

private:
    void count(const std::string& reason, const Entry& more);
    std::map<std::string, Entry> m_entries; ///< by reason
};

} // namespace pipewright
