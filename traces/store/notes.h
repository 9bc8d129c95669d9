// SPDX-License-Identifier: GPL-3.0-or-later
// What a person wrote down about stretches of a trace. The notes lie beside the trace in a file of their own (run.db ->
// run.db.notes.json), so that a trace is never changed by being looked at and notes can be handed on with it.
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

/// By start; none when there is no such file. Throws Error when it cannot be read as notes, so that nobody overwrites
/// what somebody else wrote.
std::vector<TraceNote> readNotes(const std::string& trace);
/// Atomically; without notes the file goes. Throws Error.
void writeNotes(const std::string& trace, std::vector<TraceNote> notes);

} // namespace pipewright
