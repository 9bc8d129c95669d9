// SPDX-License-Identifier: GPL-3.0-or-later
// PipeDream (arXiv 1806.03377) and PipeDream-2BW (arXiv 2006.09503): 1F1B without a flush, p - r microbatches in
// flight on device r. PipeDream updates after every backward and keeps the version of every microbatch in flight;
// 2BW updates after m >= p backwards and keeps two.
#include "core/schedule/families/asynchronous.h"

namespace pipewright {

Family pipeDream()
{
    return {"pipedream", "PipeDream", "Asynchronous 1F1B in one long run; device r keeps p - r weight versions.", 1, false,
            BackwardStyle::Full,
            [](const FamilyParameters& p) { return checkAsynchronous(p, WeightRule::PipeDream, p.accumulate.value_or(1)); },
            [](const FamilyParameters& p) { return makeAsynchronous(p, WeightRule::PipeDream, p.accumulate.value_or(1)); },
            false, true, false, true};
}

Family pipeDream2BW()
{
    return {"pipedream-2bw", "PipeDream-2BW", "Asynchronous 1F1B in one long run with two weight versions on every device.", 1, false,
            BackwardStyle::Full,
            [](const FamilyParameters& p) { return checkAsynchronous(p, WeightRule::TwoBuffers, p.accumulate.value_or(p.devices)); },
            [](const FamilyParameters& p) { return makeAsynchronous(p, WeightRule::TwoBuffers, p.accumulate.value_or(p.devices)); },
            false, true, false, true};
}

} // namespace pipewright
