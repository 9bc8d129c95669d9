// SPDX-License-Identifier: GPL-3.0-or-later
// Other tools' traces by file: which format a file has, and one or several of them, a file per rank, into one store
// with their clocks aligned.
#pragma once

#include "traces/store/activitystore.h"

#include <string>
#include <vector>

namespace pipewright {

enum class TraceFormat { None, ChromeJson, Nsight };

/// From the first bytes: JSON, gzip, or a SQLite database; None for anything else, a schedule file among them.
TraceFormat traceFormatOf(const std::string& path);

/// Whether the file is to be imported: another tool's trace, not a recording or a design of ours. Reads its beginning
/// only and throws nothing.
bool isForeignTrace(const std::string& path);

/// Whether the file is a trace of ours, recorded or imported. Throws nothing.
bool isTrace(const std::string& path);

/// Throws Error when the file is no trace.
TraceData importTrace(const std::string& path, const WorkProgress& progress = {});

struct ImportedTrace {
    std::string tool;
    int ranks = 0;
    std::int64_t slices = 0, lanes = 0, blocks = 0, steps = 0;
    Nanoseconds length = 0;
    std::vector<ClockOffset> clocks;
    ImportReport report;
};

/// Reads all files, aligns their clocks when there are several, and writes `output`, which appears whole or not at
/// all. A file whose rank is not known takes the first free one. Throws Error.
ImportedTrace importTraces(const std::vector<std::string>& paths, const std::string& output, bool overwrite,
                           const WorkProgress& progress = {});

} // namespace pipewright
