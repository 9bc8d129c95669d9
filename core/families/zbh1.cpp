// SPDX-License-Identifier: GPL-3.0-or-later
// ZB-H1 (arXiv 2401.10241): 1F1B's memory with the backward split; weight gradients fill the cool-down.
#include "core/families/orders.h"

namespace pipewright {

Family zeroBubbleH1()
{
    return {.name = "zb-h1",
            .title = "ZB-H1",
            .description = "Split backward within the memory of 1F1B; about a third of its bubble remains.",
            .defaultChunks = 1,
            .chunksSelectable = false,
            .backward = BackwardStyle::Split,
            .check = alwaysFine,
            .make = [](const FamilyParameters& p) {
                Schedule schedule;
                schedule.deviceOfStage = linearPlacement(p.devices);
                for (int device = 0; device < p.devices; ++device)
                    schedule.order.push_back(zeroBubble(device, p.microbatches, p.devices - device, device));
                return schedule;
            }};
}

} // namespace pipewright
