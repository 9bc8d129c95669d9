// SPDX-License-Identifier: GPL-3.0-or-later
// Design -> Program, Timeline and Metrics in one call: what the command line prints and the designer shows.
#pragma once

#include "core/predict/metrics.h"
#include "core/program/design.h"

namespace pipewright {

struct Prediction {
    Program program;
    Timeline timeline; ///< with memory curves
    Metrics metrics;
};

/// Throws Error with every diagnostic when the design cannot run. O(blocks).
Prediction predict(const Design& design);

} // namespace pipewright
