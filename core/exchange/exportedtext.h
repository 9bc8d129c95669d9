// SPDX-License-Identifier: GPL-3.0-or-later
// What an exporter returns: the file's content, and what the reader of the file should know (what the format
// cannot say and was left out). What makes the export impossible is thrown as Error instead.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"

#include <string>
#include <string_view>

namespace pipewright {

struct ExportedText {
    std::string text;
    Diagnostics diagnostics; ///< warnings and notes
};

/// What of the design the other tools can have: its order without pins, and without update blocks, since they update
/// every stage once, after the step. Notes what was left out: those, skip connections, shared parameters, sequence
/// pieces. Throws Error with validate()'s diagnostics when the schedule cannot run, and where it does not fit at all:
/// a stage that several devices work on in turn, or blocks that the tools have no word for (recomputation). O(blocks).
Design exportable(const Design& design, Diagnostics& diagnostics);
/// Throws Error when the schedule has a second copy of the model.
void requireOneReplica(const Design& design, std::string_view tool);

} // namespace pipewright
