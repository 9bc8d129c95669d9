// SPDX-License-Identifier: GPL-3.0-or-later
// SpecTrain (arXiv 1809.02839): asynchronous 1F1B whose forwards and backwards read weights predicted along the
// smoothed gradient, for the time at which the microbatch leaves the first stage.
#include "core/families/asynchronous.h"

namespace pipewright {

Family specTrain()
{
    return {.name = "spectrain",
            .title = "SpecTrain",
            .description = "Asynchronous 1F1B; weights predicted along the smoothed gradient of momentum SGD.",
            .backward = BackwardStyle::Full,
            .check =
                [](const FamilyParameters& p) {
                    return checkAsynchronous(p, WeightRule::SpecTrain, p.accumulate.value_or(1));
                },
            .make =
                [](const FamilyParameters& p) {
                    return makeAsynchronous(p, WeightRule::SpecTrain, p.accumulate.value_or(1));
                },
            .accumulates = true,
            .updates = true,
            .anyOptimizer = false};
}

} // namespace pipewright
