// SPDX-License-Identifier: GPL-3.0-or-later
// A trace's database, opened for reading only: also while it grows, in a folder that cannot be written to, and with
// a reason when it is something else.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

#include <string>
#include <vector>

namespace pipewright {

/// Throws Error when the file is no trace of ours or of a newer schema.
SQLite::Database openTraceDatabase(const std::string& path);
/// Any SQLite file. Throws Error when there is none of that name; what is in it is not looked at.
SQLite::Database openReadOnly(const std::string& path);

/// Endings of what SQLite keeps beside a database, by its name: left over, it would be taken for a new one's.
std::vector<std::string> databaseCompanions();

/// What went wrong while reading a trace, as an Error.
[[noreturn]] void rethrowTraceError(const std::string& path, const SQLite::Exception& error);

} // namespace pipewright
