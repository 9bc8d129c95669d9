// SPDX-License-Identifier: GPL-3.0-or-later
// 1F1B, also known as PipeDream-Flush and DAPPLE: device r warms up with p - r forwards, then alternates.
#include "core/families/orders.h"

namespace pipewright {

Family oneForwardOneBackward()
{
    return {.name = "1f1b",
            .title = "1F1B",
            .description = "Backward as early as possible; device r holds at most p - r microbatches.",
            .defaultChunks = 1,
            .chunksSelectable = false,
            .backward = BackwardStyle::Full,
            .check = alwaysFine,
            .make = [](const FamilyParameters& p) {
                Schedule schedule;
                schedule.deviceOfStage = linearPlacement(p.devices);
                for (int device = 0; device < p.devices; ++device)
                    schedule.order.push_back(alternate(device, p.microbatches, p.devices - device));
                return schedule;
            }};
}

} // namespace pipewright
