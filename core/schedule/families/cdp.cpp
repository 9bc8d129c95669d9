// SPDX-License-Identifier: GPL-3.0-or-later
// Cyclic Data Parallelism (arXiv 2403.08837): each worker two time steps behind the one before, so that a stage is
// used by one worker at a time, activations add up to a constant and gradients pass from worker to worker. Version
// 1 reads theta_{t-1} everywhere, version 2 theta_t where it is there in time.
#include "core/schedule/families/workers.h"

namespace pipewright {

Family cyclicV1()
{
    return {"cdp-v1", "CDP-v1", "Cyclic Data Parallelism: as many workers as stages, one after the other, weights one update old.", 1, false,
            BackwardStyle::Full, [](const FamilyParameters& p) { return checkWorkers(p, true); },
            [](const FamilyParameters& p) { return makeWorkers(p, WeightRule::CdpV1); }, false, false, true, true};
}

Family cyclicV2()
{
    return {"cdp-v2", "CDP-v2", "Cyclic Data Parallelism with the freshest weights that are there in time.", 1, false,
            BackwardStyle::Full, [](const FamilyParameters& p) { return checkWorkers(p, true); },
            [](const FamilyParameters& p) { return makeWorkers(p, WeightRule::CdpV2); }, false, false, true, true};
}

} // namespace pipewright
