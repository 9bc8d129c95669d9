// SPDX-License-Identifier: GPL-3.0-or-later
// SpecTrain (arXiv 1809.02839): asynchronous 1F1B that predicts weights along the smoothed gradient, for the
// forward and for the backward to the moment at which the microbatch leaves the first stage.
#include "core/schedule/families/asynchronous.h"

namespace pipewright {

Family specTrain()
{
    return {"spectrain", "SpecTrain", "Asynchronous 1F1B; weights predicted along the smoothed gradient of momentum SGD.", 1, false,
            BackwardStyle::Full,
            [](const FamilyParameters& p) { return checkAsynchronous(p, WeightRule::SpecTrain, p.accumulate.value_or(1)); },
            [](const FamilyParameters& p) { return makeAsynchronous(p, WeightRule::SpecTrain, p.accumulate.value_or(1)); },
            false, true, false, true};
}

} // namespace pipewright
