// SPDX-License-Identifier: GPL-3.0-or-later
// The costs of a stage that a group of devices holds together, in the form of a single device's costs. Times are those
// of the synthesised program (sharding/sharedstage.h), whose members wait for each other at its collectives. Bytes are
// those of the workload times the share that the program leaves on a device. The lane of a group shows its fullest
// member scaled to the smallest memory, separately for persistent bytes and for activations: for members with equal
// memory these are a member's bytes, otherwise at least what any member needs.
#pragma once

#include "core/design/costs.h"
#include "core/sharding/sharedstage.h"

namespace pipewright {

/// The bytes of a stage that are divided among the members of a group.
inline constexpr Bytes StageCosts::*bytesOnMembers[] = {
    &StageCosts::parameters,
    &StageCosts::gradients,
    &StageCosts::optimizerState,
    &StageCosts::gatheredParameters,
    &StageCosts::wholeGradients,
    &StageCosts::savedUntilInputGrad,
    &StageCosts::savedUntilWeightGrad,
    &StageCosts::savedFromInputGrad,
    &StageCosts::sparedByBackward,
    &StageCosts::sequenceGradient,
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

/// The bytes of every member for a stage with costs `whole` on a single device; times stay unchanged. Outputs are
/// whole: groupstages.h has the pieces that a member sends. O(instructions · members).
std::vector<StageCosts> memberCosts(const sharding::SharedStage& shared, const StageCosts& whole);

} // namespace pipewright
