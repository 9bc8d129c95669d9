// SPDX-License-Identifier: GPL-3.0-or-later
// Imports other tools' traces: detects the format and reads one or several files, one per rank, into one store with
// aligned clocks.
#pragma once

#include "traces/import/bytesource.h"
#include "traces/store/activitystore.h"

#include <string>
#include <vector>

namespace pipewright {

enum class TraceFormat { None, ChromeJson, Nsight };

/// By the first bytes: JSON, gzip, or a SQLite database; None for anything else, such as a schedule file.
TraceFormat traceFormatOf(const std::string& path);

/// True for another tool's trace. Reads only the file's beginning and throws nothing.
bool isForeignTrace(const std::string& path);

/// True for Pipewright's traces, recorded or imported. Throws nothing.
bool isTrace(const std::string& path);

/// Throws Error when the file is not a trace, or a compressed one of more than `most` bytes.
TraceData importTrace(const std::string& path, const WorkProgress& progress = {},
                      std::uint64_t most = mostDecompressed);

struct ImportedTrace {
    std::string tool;
    int ranks = 0;
    std::int64_t slices = 0, lanes = 0, blocks = 0, steps = 0;
    Nanoseconds length = 0;
    std::vector<ClockOffset> clocks;
    ImportReport report;
};

/// The given files; a folder is replaced by the other tools' traces in it, by name. Throws Error for a folder without
/// any.
std::vector<std::string> traceFiles(const std::vector<std::string>& paths);

/// Reads all files and folders, aligns their clocks when there are several, and writes `output`, atomically. A file
/// without a rank gets the first free one. Throws Error, also for a compressed file of more than `most` bytes.
ImportedTrace importTraces(const std::vector<std::string>& given, const std::string& output, bool overwrite,
                           const WorkProgress& progress = {}, std::uint64_t most = mostDecompressed);

} // namespace pipewright
