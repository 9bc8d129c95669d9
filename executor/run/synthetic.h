// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a scaled copy of a design that is too large, or too slow, for this machine: the same schedule, with blocks that
// take a fraction of their time and hold a fraction of their bytes. Transfers are scaled alike, so the prediction of
// the scaled design is the scaled prediction.
#pragma once

#include "core/design/costs.h"
#include "core/design/dataflow.h"

namespace pipewright {

struct SyntheticScale {
    double time = 1;   ///< of every block and transfer
    double memory = 1; ///< of every buffer
    bool operator==(const SyntheticScale&) const = default;
};

/// `costs` with all times and bytes multiplied, rounded to whole nanoseconds and bytes; a wire gets the bandwidth
/// at which the scaled bytes take the scaled time. Throws Error unless both scales are positive and finite.
Costs scaledCosts(const Costs& costs, const SyntheticScale& scale);
/// The same of the bytes that stages share and skip.
Dataflow scaledDataflow(const Dataflow& dataflow, const SyntheticScale& scale);

} // namespace pipewright
