// SPDX-License-Identifier: GPL-3.0-or-later
// What an exporter returns: the file's content, and what the reader of the file should know (what the format
// cannot say and was left out). What makes the export impossible is thrown as Error instead.
#pragma once

#include "core/base/diagnostic.h"
#include "core/program/design.h"

#include <string>
#include <string_view>

namespace pipewright {

struct ExportedText {
    std::string text;
    Diagnostics diagnostics; ///< warnings and notes
};

/// Throws Error with validate()'s diagnostics when the design's schedule cannot run, or when it holds blocks that
/// the other tools have no word for (recomputation).
void requireValid(const Design& design);
/// Throws Error when the schedule has a second copy of the model.
void requireOneReplica(const Design& design, std::string_view tool);

/// Warnings for what none of the tools takes over: pins, skip connections, shared parameters, sequence pieces.
Diagnostics warnAboutUnexported(const Design& design);

} // namespace pipewright
