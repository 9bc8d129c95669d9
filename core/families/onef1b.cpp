// SPDX-License-Identifier: GPL-3.0-or-later
// 1F1B, also known as PipeDream-Flush and DAPPLE: device r warms up with p - r forwards, then alternates.
#include "core/families/orders.h"

namespace pipewright {

Family oneForwardOneBackward()
{
    return {.name = "1f1b",
            .title = "1F1B",
            .description = "Backward as early as possible; device r holds at most p - r microbatches.",
            .backward = BackwardStyle::Full,
            .make = [](const FamilyParameters& p) {
                return linearSchedule(
                    p, [&](int device) { return alternate(device, p.microbatches, p.devices - device); });
            }};
}

} // namespace pipewright
