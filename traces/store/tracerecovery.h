// SPDX-License-Identifier: GPL-3.0-or-later
// What stays of a trace whose writer was killed, and how it is found again. No repair is needed: `tracewriter` commits
// into SQLite's write-ahead log beside the file, and whoever opens the trace next replays the log. So the log belongs
// to the trace: it is moved and removed with it, and missed where a copy is without it.
#pragma once

#include "core/base/diagnostic.h"

#include <SQLiteCpp/Database.h>

#include <string>
#include <vector>

namespace pipewright {

/// Suffixes of SQLite's files beside a database; left over, they would be read with a new one.
std::vector<std::string> databaseCompanions();

/// A warning about a trace that its writer did not finish: how many steps it holds, and what may be missing.
Diagnostics whatAKilledRunLeft(SQLite::Database& database, const std::string& path);

} // namespace pipewright
