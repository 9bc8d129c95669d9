// SPDX-License-Identifier: GPL-3.0-or-later
// What a schedule costs per training step in the terms of the table of Cyclic Data Parallelism (arXiv 2403.08837,
// table 1): devices, activations, parameters, what is communicated, and how many transfers follow one another between
// two blocks. All of it is read off the Program and its predicted times. O(instructions log instructions).
#pragma once

#include "core/predict/timeline.h"

namespace pipewright {

struct StepCosts {
    int devices = 0;
    int updates = 1;           ///< of every stage in the schedule; what follows of traffic is per update
    Bytes activations = 0;     ///< kept for backwards at most, on the device that keeps most
    Bytes allActivations = 0;  ///< the same of all devices together, at one moment
    Bytes parameters = 0;      ///< weights with their older and predicted copies, on the device that has most
    Bytes gradientTraffic = 0; ///< between devices: gradient sums …
    Bytes weightTraffic = 0;   ///< … and weights
    Bytes boundaryTraffic = 0; ///< activations between stages, and their gradients
    int transfersInRow = 0;    ///< the most that follow one another, no block between them
    bool operator==(const StepCosts&) const = default;
};

/// `timeline`: predicted or measured.
StepCosts stepCosts(const Program& program, const Timeline& timeline);

} // namespace pipewright
