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
            .backward = BackwardStyle::Full,
            .make = [](const FamilyParameters& p) {
                return linearSchedule(p, [&](int device) { return alternate(device, p.microbatches, p.microbatches); });
            }};
}

} // namespace pipewright
