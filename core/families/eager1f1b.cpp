// SPDX-License-Identifier: GPL-3.0-or-later
// Eager 1F1B (arXiv 2211.05322): a deeper warm-up of 2(p - r) - 1 forwards, which hides transfers behind
// compute at the price of memory. It needs 2p - 1 microbatches to reach its full shape.
#include "core/families/orders.h"

namespace pipewright {

Family eagerOneForwardOneBackward()
{
    return {.name = "eager-1f1b",
            .title = "Eager 1F1B",
            .description = "1F1B with a deeper warm-up that hides transfers; device r holds up to 2(p - r) - 1.",
            .backward = BackwardStyle::Full,
            .make = [](const FamilyParameters& p) {
                return linearSchedule(
                    p, [&](int device) { return alternate(device, p.microbatches, 2 * (p.devices - device) - 1); });
            }};
}

} // namespace pipewright
