// SPDX-License-Identifier: GPL-3.0-or-later
// Opens a trace's database read-only: also while it is being written and in a read-only folder. Other files are refused
// with a reason. Files may come from strangers: views and triggers in them do not run.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

#include <string>
#include <vector>

namespace pipewright {

/// Throws Error when the file is no trace of ours or of a newer schema.
SQLite::Database openTraceDatabase(const std::string& path);
/// Any SQLite file; its contents are not checked. Throws Error when it does not exist. A file that stays locked throws
/// SQLITE_BUSY within a second.
SQLite::Database openReadOnly(const std::string& path);

/// Suffixes of SQLite's files beside a database; left over, they would be read with a new one.
std::vector<std::string> databaseCompanions();

/// For functions that tell what a file is: of a locked one nobody knows, and to ask again would wait again. Rethrows
/// its error as rethrowTraceError(), and returns with any other.
void rethrowIfLocked(const std::string& path, const SQLite::Exception& error);

/// Rethrows a database error of a trace as Error.
[[noreturn]] void rethrowTraceError(const std::string& path, const SQLite::Exception& error);

} // namespace pipewright
