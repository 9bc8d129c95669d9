// SPDX-License-Identifier: GPL-3.0-or-later
// Opens a trace's database read-only, also while it is being written and in a read-only folder. Other files are refused
// with a reason. Files are not trusted: nothing in them is executed (views, triggers, generated columns, modules), and
// a statement is interrupted when it takes far more work than the size of the file allows.
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

/// Applies the same limits to a database that was opened in another way; call it before the first statement. An
/// interrupted statement throws SQLITE_INTERRUPT.
void limitDatabase(SQLite::Database& database);
/// Throws Error when reading a table would execute code from the file.
void refusePrograms(SQLite::Database& database);

/// The hint for a database that cannot be written.
inline constexpr const char* writingHint =
    "is the disk full, a limit on the size of files reached (ulimit -f), or the file on a network share?";

/// A time or duration in nanoseconds from an untrusted file, clamped to 73 years so that the difference of two does not
/// overflow.
std::int64_t storedTime(std::int64_t said);
std::int64_t storedTime(const SQLite::Column& column);

/// For functions that recognise a file. A locked file cannot be recognised, and a second try would wait again: its
/// error is rethrown as by rethrowTraceError(). Returns for any other error.
void rethrowIfLocked(const std::string& path, const SQLite::Exception& error);

/// Rethrows a database error of a trace as Error.
[[noreturn]] void rethrowTraceError(const std::string& path, const SQLite::Exception& error);

} // namespace pipewright
