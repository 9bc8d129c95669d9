// SPDX-License-Identifier: GPL-3.0-or-later
// Explains why a run is stuck, so that the user can act on it: which device waits for which value from which device,
// and what that device did instead of sending it.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/runtime/actor.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// The state of a run at one moment.
struct RunSnapshot {
    std::vector<ActorStatus> actors; ///< per device
    std::vector<Link::Heads> links;  ///< per planned link
};

/// Whether no device runs, one is not done, and no wait can end. Without asynchronous devices this is final. The
/// snapshot must have been taken while nothing made progress.
bool cannotGoOn(const RunSnapshot& snapshot);

/// One diagnostic per device that is not done, devices that stopped by themselves first. Waits read like
/// "device 1: error: waits for F0.3 from device 0, which has not been sent (device 0 stopped at
/// instruction 17: send of F0.2 to device 1)".
Diagnostics explainStall(const RunState& run, const RunSnapshot& snapshot);

/// A step that was given up for `reason`, and the actors whose maths has not returned since.
Diagnostics whoDoesNotComeBack(const RunState& run, std::span<const std::unique_ptr<Actor>> actors,
                               const std::string& reason);

/// "send of F0.3 to device 1", "free of a buffer after F0.3 to device 1", "B0.2".
std::string describeInstruction(const Program& program, int device, std::uint32_t instruction);

} // namespace pipewright
