// SPDX-License-Identifier: GPL-3.0-or-later
// XPipe (arXiv 1911.04610): mini-batches of T microbatches, one update each, in asynchronous 1F1B. The microbatches
// of a mini-batch share the weights that its first one predicted along Adam's moments.
#include "core/families/asynchronous.h"

#include <algorithm>

namespace pipewright {

namespace {

int batchOf(const FamilyParameters& p)
{
    return p.accumulate.value_or(std::max(2, p.devices));
}

} // namespace

Family xpipe()
{
    return {.name = "xpipe",
            .title = "XPipe",
            .description =
                "Asynchronous 1F1B; the microbatches of a mini-batch share a prediction along Adam's moments.",
            .backward = BackwardStyle::Full,
            .check = [](const FamilyParameters& p) { return checkAsynchronous(p, WeightRule::XPipe, batchOf(p)); },
            .make = [](const FamilyParameters& p) { return makeAsynchronous(p, WeightRule::XPipe, batchOf(p)); },
            .accumulates = true,
            .updates = true,
            .usualOptimizer = usualOptimizer(WeightRule::XPipe),
            .anyOptimizer = false};
}

} // namespace pipewright
