// SPDX-License-Identifier: GPL-3.0-or-later
// The costs of a schedule per training step as in table 1 of Cyclic Data Parallelism (arXiv 2403.08837): devices,
// activations, parameters, communicated bytes, and the longest chain of transfers between two blocks. All numbers come
// from the Program and its predicted times. O(instructions log instructions).
#pragma once

#include "core/predict/timeline.h"

namespace pipewright {

struct StepCosts {
    int devices = 0;
    int updates = 1;           ///< of every stage in the schedule; traffic is per update
    Bytes activations = 0;     ///< peak of saved activations, on the device with the most
    Bytes allActivations = 0;  ///< peak of the sum over all devices
    Bytes parameters = 0;      ///< weights with older and predicted copies, on the device with the most
    Bytes gradientTraffic = 0; ///< between devices: gradient sums …
    Bytes weightTraffic = 0;   ///< … and weights
    Bytes boundaryTraffic = 0; ///< activations between stages, and their gradients
    int transfersInRow = 0;    ///< longest chain of transfers without a block between them
    bool operator==(const StepCosts&) const = default;
};

/// `timeline`: predicted or measured.
StepCosts stepCosts(const Program& program, const Timeline& timeline);

} // namespace pipewright
