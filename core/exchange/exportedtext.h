// SPDX-License-Identifier: GPL-3.0-or-later
// An exporter's result: the file's content, and notes about what the format cannot express and was left out. An
// impossible export is thrown as Error.
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

/// The part of a design that other tools understand: its order without pins and update blocks, since they update every
/// stage once after the step. Notes what is left out: those, skip connections, shared parameters, sequence pieces.
/// Throws Error with validate()'s diagnostics when the schedule cannot run, and for stages that several devices run in
/// turn or blocks unknown to the tools (recomputation). O(blocks).
Design exportable(const Design& design, Diagnostics& diagnostics);
/// Throws Error when the schedule has a second copy of the model.
void requireOneReplica(const Design& design, std::string_view tool);

} // namespace pipewright
