// SPDX-License-Identifier: GPL-3.0-or-later
// Cyclic Data Parallelism (arXiv 2403.08837): each worker starts two time steps after the previous one, so that one
// worker at a time uses a stage, the total of activations is constant and gradients pass from worker to worker. Version
// 1 reads the weights theta_{t-1} everywhere, version 2 theta_t where it is ready in time: see schedule/cdprule.cpp.
#include "core/families/workers.h"

namespace pipewright {

Family cyclicV1()
{
    return {.name = "cdp-v1",
            .title = "CDP-v1",
            .description =
                "Cyclic Data Parallelism: as many workers as stages, one after the other, weights one update old.",
            .backward = BackwardStyle::Full,
            .check = [](const FamilyParameters& p) { return checkWorkers(p, true); },
            .make = [](const FamilyParameters& p) { return makeWorkers(p, WeightRule::CdpV1); },
            .dataParallel = true,
            .cyclic = true,
            .updates = true};
}

Family cyclicV2()
{
    return {.name = "cdp-v2",
            .title = "CDP-v2",
            .description = "Cyclic Data Parallelism with the freshest weights that are there in time.",
            .backward = BackwardStyle::Full,
            .check = [](const FamilyParameters& p) { return checkWorkers(p, true); },
            .make = [](const FamilyParameters& p) { return makeWorkers(p, WeightRule::CdpV2); },
            .dataParallel = true,
            .cyclic = true,
            .updates = true};
}

} // namespace pipewright
