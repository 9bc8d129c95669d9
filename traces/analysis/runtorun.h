// SPDX-License-Identifier: GPL-3.0-or-later
// How much two runs of one schedule differ, without any prediction. Costs measured in the first run cannot predict the
// second one more exactly than that.
#pragma once

#include "traces/analysis/comparison.h"
#include "traces/store/tracereader.h"

#include <string>

namespace pipewright {

struct RunToRun {
    Nanoseconds first = 0, second = 0; ///< makespans of the steps of median length
    double change = 0;                 ///< of the second against the first
    double errorOfFirst = 0;           ///< of the prediction against the first
};

/// `comparison` is for the second run. Throws Error for a trace that cannot be read or is of another program.
RunToRun runToRun(const std::string& firstRun, const Program& program, const Comparison& comparison,
                  BlockTime by = BlockTime::Events);

} // namespace pipewright
