// SPDX-License-Identifier: GPL-3.0-or-later
// Where the time of every device went in a measured step, as Holistic Trace Analysis tells idle time by its cause, but
// with the Program at hand: what a block waited for is known, not guessed from a threshold.
#pragma once

#include "traces/analysis/explanation.h"

namespace pipewright {

/// Per task, how much of its lag a device spent waiting to free a buffer that was still being sent. O(instructions).
std::vector<Nanoseconds> memoryWaits(const Program& program, const Replay& replay);

/// The parts of each device add up to the makespan. O(tasks log tasks).
std::vector<DeviceExplanation> idleTimes(const Program& program, const Replay& replay,
                                         const std::vector<Nanoseconds>& memory);

std::vector<BlockDifference> blockDifferences(const Program& program, const Timeline& predicted, const Replay& replay,
                                              const std::vector<Nanoseconds>& memory);

} // namespace pipewright
