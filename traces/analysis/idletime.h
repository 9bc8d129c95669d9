// SPDX-License-Identifier: GPL-3.0-or-later
// Idle time by cause of every device in a measured step, as in Holistic Trace Analysis, but with the Program: a block's
// dependencies are known instead of inferred from a threshold.
#pragma once

#include "traces/analysis/explanation.h"

namespace pipewright {

/// Per task, the part of its lag spent waiting to free a buffer that was still being sent. O(instructions).
std::vector<Nanoseconds> memoryWaits(const Program& program, const Replay& replay);

/// By device, then time. O(tasks log tasks).
std::vector<IdleGap> idleGaps(const Program& program, const Replay& replay, const std::vector<Nanoseconds>& memory);

/// The sum of all devices' gaps between two times; a gap that reaches beyond them counts in part. `gaps` as returned by
/// idleGaps(). O(gaps between the times).
IdleGap idleBetween(const std::vector<IdleGap>& gaps, Nanoseconds from, Nanoseconds to);

/// Per device its times with the sums of its gaps; the parts of each device add up to the makespan. O(tasks log tasks).
std::vector<DeviceExplanation> idleTimes(const Program& program, const Replay& replay,
                                         const std::vector<IdleGap>& gaps);

std::vector<BlockDifference> blockDifferences(const Program& program, const Timeline& predicted, const Replay& replay,
                                              const std::vector<Nanoseconds>& memory);

} // namespace pipewright
