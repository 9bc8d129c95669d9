// SPDX-License-Identifier: GPL-3.0-or-later
// Traces whose writer was killed. No repair is needed: `tracewriter` commits into SQLite's write-ahead log beside the
// file, and the next reader replays the log. So the log is part of the trace: it must be moved, copied and removed with
// it.
#pragma once

#include "core/base/diagnostic.h"

#include <SQLiteCpp/Database.h>

#include <string>
#include <vector>

namespace pipewright {

/// Suffixes of SQLite's files beside a database. A leftover companion would be read as part of a new database.
std::vector<std::string> databaseCompanions();

/// A warning about a trace that its writer did not finish: how many steps it holds, and what may be missing.
Diagnostics whatAKilledRunLeft(SQLite::Database& database, const std::string& path);

} // namespace pipewright
