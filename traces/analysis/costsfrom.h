// SPDX-License-Identifier: GPL-3.0-or-later
// A schedule whose costs are carried over to another one of the same model: --costs-from, and the designer's
// counterpart.
#pragma once

#include "core/design/design.h"

#include <string>

namespace pipewright {

/// True for an imported trace: which design it recorded has to be said. Throws Error for a trace that cannot be read.
bool isTraceWithoutDesign(const std::string& path);

/// A design file as it is; of a recorded run its design, calibrated with it. `recorded`: the design that the trace
/// recorded, in place of its own. Throws Error, also when there is such a design beside a file that is no trace.
Design readCostsFrom(const std::string& path, const Design* recorded = nullptr);

} // namespace pipewright
