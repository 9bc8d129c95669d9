// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/tracerecovery.h"

#include <filesystem>
#include <system_error>

namespace pipewright {

std::vector<std::string> databaseCompanions()
{
    return {"-journal", "-wal", "-shm"};
}

Diagnostics whatAKilledRunLeft(SQLite::Database& database, const std::string& path)
{
    const std::int64_t finished = database.execAndGet("SELECT count(1) FROM STEPS").getInt64();
    std::string hint =
        "steps after these, the memory peaks of the whole run and the number of dropped records may be missing";
    // SQLite makes an empty log where there is none.
    std::error_code error;
    const std::string log = std::filesystem::path(path + "-wal").filename().string();
    if (const auto size = std::filesystem::file_size(path + "-wal", error); error || size == 0)
        hint += "; should this be a copy, then the file " + log + ", with what was recorded last, belongs beside it";
    return {{Severity::Warning, path,
             "the trace is not complete: its run was killed, was ended early or is still going on; it holds "
                 + std::to_string(finished) + (finished == 1 ? " finished step" : " finished steps"),
             hint}};
}

} // namespace pipewright
