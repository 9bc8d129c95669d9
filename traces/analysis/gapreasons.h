// SPDX-License-Identifier: GPL-3.0-or-later
// What one idle gap of a measured step waited for, gathered from the causes and gaps of its explanation: the block
// whose result was awaited and whether that block was slower than predicted, the transfer and whether its link was busy
// or a host late for it.
#pragma once

#include "traces/analysis/explanation.h"

namespace pipewright {

struct GapReasons {
    TaskId producer = none; ///< the block whose result the one behind the gap reads; none: none on another place
    TaskId transfer = none; ///< what carried it; none: it stayed on the device
    Nanoseconds producerLonger = 0; ///< of the producer: measured less predicted duration
    /// Why the producer itself began later than predicted.
    BlockDifference::Why producerWhy = BlockDifference::Why::OnTime;
    bool linkBusy = false; ///< the transfer shared a link with another and took longer for it
    int lateHost = -1;     ///< the device whose host was late for the transfer; -1: none
};

/// `explanation` is of the program with these predicted times; the gap is one of its. O(causes × their tasks).
GapReasons reasonsOf(const Program& program, const Timeline& predicted, const Explanation& explanation,
                     const IdleGap& gap);

/// The gap that a block ends, or, for `none`, that after a device's last block; null when there was no idle time.
const IdleGap* gapBefore(const Explanation& explanation, int device, TaskId block);

} // namespace pipewright
