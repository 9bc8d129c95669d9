// SPDX-License-Identifier: GPL-3.0-or-later
// ZB-H1 (arXiv 2401.10241): 1F1B's memory with the backward split; weight gradients fill the cool-down.
#include "core/families/orders.h"

namespace pipewright {

Family zeroBubbleH1()
{
    return {.name = "zb-h1",
            .title = "ZB-H1",
            .description = "Split backward within the memory of 1F1B; about a third of its bubble remains.",
            .backward = BackwardStyle::Split,
            .make = [](const FamilyParameters& p) {
                return linearSchedule(
                    p, [&](int device) { return zeroBubble(device, p.microbatches, p.devices - device, device); });
            }};
}

} // namespace pipewright
