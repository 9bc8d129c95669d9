// SPDX-License-Identifier: GPL-3.0-or-later
// A run of Pipewright as slices on lanes, the form in which imported traces are shown: for each device of the design
// its blocks, the received transfers, and below them the streams with the kernels that its blocks launched, if CUPTI
// recorded; then steps, host calls and the memory of each device. It is read by activitystore's readActivities().
#pragma once

#include "traces/store/activitystore.h"

namespace SQLite {
class Database;
}

namespace pipewright {

/// Times count from the first step. O(records log records). Throws Error.
StoredActivities recordedActivities(SQLite::Database& database, const std::string& path,
                                    const WorkProgress& progress = {});

} // namespace pipewright
