// SPDX-License-Identifier: GPL-3.0-or-later
// The bytes that a stage holds from step to step on its device. They are those of its costs, but for a parameter that
// the device already holds for another stage or another use: a tied head on its embedding's device is one matrix.
#pragma once

#include "core/design/costs.h"
#include "core/design/dataflow.h"
#include "core/schedule/schedule.h"

#include <vector>

namespace pipewright {

struct StageState {
    Bytes parameters = 0, gradients = 0;
    Bytes optimizer = 0; ///< all of it, though replicas may share it out
    /// Not all the time: what is shared out, as a whole.
    Bytes gathered = 0, wholeGradients = 0;
    Bytes bytes() const { return parameters + gradients + optimizer; }
};

/// Of a stage's copy in `replica`. A shared parameter has as large a part of the stage's optimizer state as of its
/// gradients, and of its parameters if it does not say otherwise (SharedParameter::values). O(shared parameters).
StageState stageState(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow, int stage, int replica);

/// What a framework holds on a device besides the states of stages: the most that any of them shares with others, and
/// all narrow weights.
struct HeldBesides {
    Bytes bytes = 0;
    int stage = 0; ///< the first that shares so much
};
/// Per device of the schedule. O(replicas x stages).
std::vector<HeldBesides> heldBesides(const Schedule& schedule, const Costs& costs);

struct SparedState {
    Bytes bytes = 0;
    int device = 0;
};
/// What copies of shared parameters would take in addition on one device, and the first device for which that is most.
SparedState sparedByOneParameter(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow);

} // namespace pipewright
