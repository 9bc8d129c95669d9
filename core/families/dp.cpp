// SPDX-License-Identifier: GPL-3.0-or-later
// Plain data parallelism, the baseline for Cyclic Data Parallelism: all workers run the same pass at the same time, and
// their gradients are summed at the end of the training step.
#include "core/families/workers.h"

namespace pipewright {

Family dataParallel()
{
    return {.name = "dp",
            .title = "data parallel",
            .description = "All workers in step; gradients are summed at once, when the last backward of a stage ends.",
            .backward = BackwardStyle::Full,
            .check = [](const FamilyParameters& p) { return checkWorkers(p, false); },
            .make = [](const FamilyParameters& p) { return makeWorkers(p, WeightRule::Synchronous); },
            .dataParallel = true,
            .updates = true};
}

} // namespace pipewright
