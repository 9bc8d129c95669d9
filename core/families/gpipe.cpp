// SPDX-License-Identifier: GPL-3.0-or-later
// GPipe (arXiv 1811.06965): all forwards, then all backwards, here in ascending microbatch order as PyTorch
// runs them.
#include "core/families/orders.h"

namespace pipewright {

Family gpipe()
{
    return {.name = "gpipe",
            .title = "GPipe",
            .description = "All forwards, then all backwards; every activation of the step is live at once.",
            .defaultChunks = 1,
            .chunksSelectable = false,
            .backward = BackwardStyle::Full,
            .check = alwaysFine,
            .make = [](const FamilyParameters& p) {
                Schedule schedule;
                schedule.deviceOfStage = linearPlacement(p.devices);
                for (int device = 0; device < p.devices; ++device)
                    schedule.order.push_back(alternate(device, p.microbatches, p.microbatches));
                return schedule;
            }};
}

} // namespace pipewright
