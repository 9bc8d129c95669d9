// SPDX-License-Identifier: GPL-3.0-or-later
// User notes on stretches of a trace, in a file beside it (run.db -> run.db.notes.json), so that viewing never changes
// a trace.
#pragma once

#include "core/base/units.h"

#include <string>
#include <vector>

namespace pipewright {

struct TraceNote {
    Nanoseconds start = 0, end = 0; ///< since the trace's beginning; with a step, since that step's
    int step = -1;                  ///< of a recording; -1: of the whole trace
    std::string text;               ///< UTF-8, not empty
    bool operator==(const TraceNote&) const = default;
};

std::string notesPath(const std::string& trace);

/// By start; none when there is no such file. Throws Error when it is not a notes file, so that it is not overwritten.
std::vector<TraceNote> readNotes(const std::string& trace);
/// Atomic; removes the file when there are no notes. Throws Error.
void writeNotes(const std::string& trace, std::vector<TraceNote> notes);

} // namespace pipewright
