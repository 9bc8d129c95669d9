// SPDX-License-Identifier: GPL-3.0-or-later
// The use of weight versions by a compiled schedule, per stage: staleness of gradients, prediction distance, and the
// number of copies held at once. Computed from the Program's tasks and buffers. O(tasks + buffers).
#pragma once

#include "core/program/program.h"

namespace pipewright {

struct StageWeights {
    int stage = 0;
    int updates = 0;
    int staleness = 0; ///< the largest over its backwards' forwards: what the filled pipeline has
    double meanStaleness = 0;
    int forwardSteps = 0, backwardSteps = 0; ///< largest prediction
    int versions = 0; ///< most versions held at once where it is updated, the newest included; sharded: anywhere
    int copies = 0;   ///< the same with predicted weights; sharded: the resident copy and those in flight
    Bytes bytes = 0;  ///< of those copies
    int inFlight = 0; ///< most microbatches whose forward has run and whose backward has not, over all devices
};

/// Empty for a Program without U blocks.
std::vector<StageWeights> weightReport(const Program& program);

/// Bytes of gradient sums and of weights that are sent between devices in the whole Program.
struct WeightTraffic {
    Bytes gradients = 0, weights = 0;
};
WeightTraffic weightTraffic(const Program& program);

} // namespace pipewright
