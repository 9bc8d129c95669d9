// SPDX-License-Identifier: GPL-3.0-or-later
// PipeDream (SOSP 2019) and PipeDream-2BW (arXiv 2006.09503) as orders: both run 1F1B without a flush, p - r
// microbatches in flight on device r. A schedule of m microbatches is one such run, filled once and drained
// once. Which weights a pass reads, stashed per microbatch or one of two versions, is not the order's business.
#include "core/schedule/families/orders.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

Schedule makeContinuous(const FamilyParameters& p)
{
    Schedule schedule;
    schedule.deviceOfStage = linearPlacement(p.devices);
    for (int device = 0; device < p.devices; ++device)
        schedule.order.push_back(alternate(device, p.microbatches, p.devices - device));
    return schedule;
}

Diagnostics checkAccumulation(const FamilyParameters& p)
{
    if (p.microbatches >= p.devices)
        return {};
    return {{Severity::Error, "--microbatches", fmt::format("{} microbatches on {} devices", p.microbatches, p.devices),
             "two weight versions suffice from as many microbatches per update as devices"}};
}

} // namespace

Family pipeDream()
{
    return {"pipedream", "PipeDream", "Asynchronous 1F1B in one long run; device r keeps p - r weight versions.",
            1, false, BackwardStyle::Full, alwaysFine, makeContinuous};
}

Family pipeDream2BW()
{
    return {"pipedream-2bw", "PipeDream-2BW", "Asynchronous 1F1B in one long run with two weight versions on every device.",
            1, false, BackwardStyle::Full, checkAccumulation, makeContinuous};
}

} // namespace pipewright
