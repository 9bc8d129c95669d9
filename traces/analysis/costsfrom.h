// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the design whose costs are carried over to another schedule of the same model, for --costs-from and its
// counterpart in the designer.
#pragma once

#include "traces/analysis/calibration.h"

#include <string>
#include <vector>

namespace pipewright {

/// True for an imported trace: the user has to name the design that it recorded. Throws Error for a trace that cannot
/// be read.
bool isTraceWithoutDesign(const std::string& path);

struct CarriedCosts {
    Design design;
    std::vector<std::string> notes{}; ///< how the trace became costs
};

/// For a design file the design itself; for a recorded run its design, calibrated with the run. `recorded`: the design
/// that the trace recorded, in place of its own. Throws Error, also when `recorded` is given for a file that is not a
/// trace.
CarriedCosts readCostsFrom(const std::string& path, const Design* recorded = nullptr,
                           BusyMachine busy = BusyMachine::Refuse);

} // namespace pipewright
