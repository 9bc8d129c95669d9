// SPDX-License-Identifier: GPL-3.0-or-later
// The time-aware ZB-V heuristic (arXiv 2401.10241, section 6): two chunks per device in a V, forwards as
// early as memory and the turn of the V allow, then one backward and one forward in turn with W in the gaps.
// Shared by zb-v and v-auto. O(devices x microbatches) per run; four variants, each refined while it improves.
#pragma once

#include "core/families/searchinputs.h"
#include "core/schedule/block.h"

#include <optional>
#include <vector>

namespace pipewright {

/// Stage s < p on device s, the others back again: stage s on device 2p - 1 - s.
std::vector<int> vPlacement(int devices);

struct VOrder {
    std::vector<std::vector<Block>> order; ///< per device
    Nanoseconds bubble = 0;                ///< longest idle time within a device's span
};

/// Nothing when no variant fits into the limits. `times` are per stage (2p of them).
std::optional<VOrder> zeroBubbleVHeuristic(int devices, int microbatches, const std::vector<StageTimes>& times,
                                           Nanoseconds transfer, const SearchMemory& memory);

} // namespace pipewright
