// SPDX-License-Identifier: GPL-3.0-or-later
// Plain data parallelism, the baseline of the cyclic kind: all workers do the same at the same time, and their
// gradients meet at the end of the training step.
#include "core/schedule/families/workers.h"

namespace pipewright {

Family dataParallel()
{
    return {"dp", "data parallel", "All workers in step; gradients are summed at once, when the last backward of a stage ends.", 1, false,
            BackwardStyle::Full, [](const FamilyParameters& p) { return checkWorkers(p, false); },
            [](const FamilyParameters& p) { return makeWorkers(p, WeightRule::Synchronous); }, false, false, true, true};
}

} // namespace pipewright
