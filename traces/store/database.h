// SPDX-License-Identifier: GPL-3.0-or-later
// Opens a trace's database read-only: also while it is being written and in a read-only folder. Other files are refused
// with a reason. Files are not trusted: nothing in them is executed (views, triggers, generated columns, modules),
// and a statement that takes far more work than the size of the file explains is ended.
#pragma once

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

#include <string>

namespace pipewright {

/// Throws Error when the file is no trace of ours or of a newer schema.
SQLite::Database openTraceDatabase(const std::string& path);
/// Any SQLite file of ordinary tables. Throws Error when it does not exist or holds others. A file that stays locked
/// throws SQLITE_BUSY within a second.
SQLite::Database openReadOnly(const std::string& path);

/// What holds for both: for a database that is opened otherwise, before its first statement. A statement that is ended
/// for its work throws SQLITE_INTERRUPT.
void limitDatabase(SQLite::Database& database);
/// Throws Error when reading a table would run what the file's author wrote.
void refusePrograms(SQLite::Database& database);

/// What to do where a database cannot be written.
inline constexpr const char* writingHint =
    "is the disk full, a limit on the size of files reached (ulimit -f), or the file on a network share?";

/// A time or duration in nanoseconds, clamped to 73 years whatever the file says: differences of two do
/// not overflow.
std::int64_t storedTime(std::int64_t said);
std::int64_t storedTime(const SQLite::Column& column);

/// For functions that recognise a file: a locked one cannot be recognised, and a second try would wait again. Rethrows
/// its error as rethrowTraceError(), and returns with any other.
void rethrowIfLocked(const std::string& path, const SQLite::Exception& error);

/// Rethrows a database error of a trace as Error.
[[noreturn]] void rethrowTraceError(const std::string& path, const SQLite::Exception& error);

} // namespace pipewright
