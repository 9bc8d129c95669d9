// SPDX-License-Identifier: GPL-3.0-or-later
// An exporter's result: the file's content, and notes on what was left out because the format cannot express it. An
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

/// Whether all that the design states is exported, noted as left out, refused, or without meaning for other tools.
bool isNamedInExports(const Design& design);
/// The part of a design that other tools understand: its order without pins and without update blocks, since other
/// tools update every stage once after the step. Notes what is left out: pins, updates, skip connections, shared
/// parameters, sequence pieces, groups. Throws Error with validate()'s diagnostics when the schedule cannot run, and
/// for stages that several devices run in turn, and for blocks that the tools do not know (recomputation). O(blocks).
Design exportable(const Design& design, Diagnostics& diagnostics);
/// Notes that the stated order of transfers is left out, where the other tool orders them by itself.
void leaveOutTransferOrder(const Design& design, Diagnostics& diagnostics);
/// Throws Error when the schedule has a second copy of the model.
void requireOneReplica(const Design& design, std::string_view tool);

} // namespace pipewright
