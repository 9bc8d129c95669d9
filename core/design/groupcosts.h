// SPDX-License-Identifier: GPL-3.0-or-later
// The costs of a stage that a group of devices holds together, in the form of a single device's costs. Times are those
// of the synthesised program (sharding/sharedstage.h), whose members wait for each other at its collectives. Bytes are
// the workload's own, times the share that the program leaves on a device; the lane of a group shows its fullest member
// in terms of the smallest memory, separately for what stays all the time and for activations: with members of one size
// that is a member's bytes, otherwise no less than any member needs.
#pragma once

#include "core/design/costs.h"
#include "core/sharding/sharedstage.h"

namespace pipewright {

/// What members of a group share of a stage's bytes.
inline constexpr Bytes StageCosts::*bytesOnMembers[] = {
    &StageCosts::parameters,
    &StageCosts::gradients,
    &StageCosts::optimizerState,
    &StageCosts::savedUntilInputGrad,
    &StageCosts::savedUntilWeightGrad,
    &StageCosts::savedFromInputGrad,
    &StageCosts::sparedByBackward,
    &StageCosts::recomputedUntilInputGrad,
    &StageCosts::recomputedUntilWeightGrad,
    &StageCosts::workspaceRecompute,
    &StageCosts::workspaceForward,
    &StageCosts::workspaceInputGrad,
    &StageCosts::workspaceWeightGrad,
    &StageCosts::workspaceBackward,
};

/// `stage` holds the bytes of a single device; its times and bytes become those of the group's lane. O(instructions).
void applyGroupCosts(const sharding::SharedStage& shared, const DeviceSpec& group, StageCosts& stage);

/// The bytes of every member, of a stage that has `whole` on a single device; times are left as they are. Outputs are
/// whole: what a member really sends is in groupstages.h. O(instructions · members).
std::vector<StageCosts> memberCosts(const sharding::SharedStage& shared, const StageCosts& whole);

} // namespace pipewright
