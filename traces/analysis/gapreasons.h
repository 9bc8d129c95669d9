// SPDX-License-Identifier: GPL-3.0-or-later
// What an idle gap of a measured step waited for, collected from the causes and gaps of its explanation: the block
// whose result was awaited and whether it was slower than predicted, the transfer of the result, and whether its link
// was busy or a host was late for it.
#pragma once

#include "traces/analysis/explanation.h"

namespace pipewright {

struct GapReasons {
    TaskId producer = none;         ///< the block whose result is read after the gap; none: no other block's
    TaskId transfer = none;         ///< of that result; none: it stayed on the device
    Nanoseconds producerLonger = 0; ///< measured minus predicted duration of the producer
    /// Why the producer itself began later than predicted.
    BlockDifference::Why producerWhy = BlockDifference::Why::OnTime;
    bool linkBusy = false; ///< the transfer took longer because it shared its link
    int lateHost = -1;     ///< the device whose host was late for the transfer; -1: none
};

/// `explanation` is for the program with these predicted times; `gap` is one of its gaps. O(causes × their tasks).
GapReasons reasonsOf(const Program& program, const Timeline& predicted, const Explanation& explanation,
                     const IdleGap& gap);

/// The gap that `block` ends or, for `none`, the gap after the device's last block; null when there was no idle time.
const IdleGap* gapBefore(const Explanation& explanation, int device, TaskId block);

} // namespace pipewright
