// SPDX-License-Identifier: GPL-3.0-or-later
// ZB-H2 (arXiv 2401.10241): a warm-up of 2(p - r) - 1 forwards fills the bubble before the first backward
// too; with equal pass times no device idles between its first and its last block.
#include "core/families/orders.h"

namespace pipewright {

Family zeroBubbleH2()
{
    return {.name = "zb-h2",
            .title = "ZB-H2",
            .description =
                "No bubble within a device's span when the passes take equal time; twice the memory of 1F1B.",
            .backward = BackwardStyle::Split,
            .make = [](const FamilyParameters& p) {
                return linearSchedule(p, [&](int device) {
                    return zeroBubble(device, p.microbatches, 2 * (p.devices - device) - 1, 2 * device);
                });
            }};
}

} // namespace pipewright
