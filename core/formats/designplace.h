// SPDX-License-Identifier: GPL-3.0-or-later
// From what a diagnostic names in a design ("device 1, position 3 (B0.0)", "costs.stages, stage 2") to the
// line of the file where it stands, so that whoever edits a design by hand is sent there.
#pragma once

#include "core/base/diagnostic.h"

#include <string>

namespace pipewright {

/// The same diagnostics with "file:line: " in front of what they say: where becomes "file:line", and the
/// former place is said first. The file alone where it does not hold the named place, or cannot be read
/// any more. Unchanged when `file` is empty (a design that is in no file).
Diagnostics placedInFile(Diagnostics diagnostics, const std::string& file);

} // namespace pipewright
