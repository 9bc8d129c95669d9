// SPDX-License-Identifier: GPL-3.0-or-later
// PipeDream (arXiv 1806.03377) and PipeDream-2BW (arXiv 2006.09503): 1F1B without a flush, p - r microbatches in
// flight on device r. PipeDream updates after every backward and keeps the version of every microbatch in flight;
// 2BW updates after m >= p backwards and keeps two.
#include "core/families/asynchronous.h"

namespace pipewright {

Family pipeDream()
{
    return {.name = "pipedream",
            .title = "PipeDream",
            .description = "Asynchronous 1F1B in one long run; device r keeps p - r weight versions.",
            .backward = BackwardStyle::Full,
            .check =
                [](const FamilyParameters& p) {
                    return checkAsynchronous(p, WeightRule::PipeDream, p.accumulate.value_or(1));
                },
            .make =
                [](const FamilyParameters& p) {
                    return makeAsynchronous(p, WeightRule::PipeDream, p.accumulate.value_or(1));
                },
            .accumulates = true,
            .updates = true};
}

Family pipeDream2BW()
{
    return {.name = "pipedream-2bw",
            .title = "PipeDream-2BW",
            .description = "Asynchronous 1F1B in one long run with two weight versions on every device.",
            .backward = BackwardStyle::Full,
            .check =
                [](const FamilyParameters& p) {
                    return checkAsynchronous(p, WeightRule::TwoBuffers, p.accumulate.value_or(p.devices));
                },
            .make =
                [](const FamilyParameters& p) {
                    return makeAsynchronous(p, WeightRule::TwoBuffers, p.accumulate.value_or(p.devices));
                },
            .accumulates = true,
            .updates = true};
}

} // namespace pipewright
