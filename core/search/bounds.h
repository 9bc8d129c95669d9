// SPDX-License-Identifier: GPL-3.0-or-later
// Lower bounds on the span and on the makespan, each with its reason in words. They count a device's work, the work
// that its memory delays, and the time that a microbatch spends on other devices; no schedule is made. A schedule that
// meets a bound is optimal. O(devices² + tasks). The strongest bound looks at one device d from the first block to the
// last input gradient (or backward):
// - before its first gradient arrives it can only run as many forwards as fit into memory, and make again what they are
//   to (warm-up);
// - after its last forward it can only work on the microbatches that were live then, until the last one returns
//   (cool-down);
// - weight gradients that memory does not allow to be postponed come on top.
// The time on the other devices, to reach device d first and to return from it at the end, is added.
#pragma once

#include "core/search/searchmodel.h"

#include <string>
#include <vector>

namespace pipewright {

struct SearchBound {
    Nanoseconds value = 0;
    int device = 0;   ///< the device whose time it bounds
    std::string name; ///< "work", "memory", "way", "area", "rounds", "path"
    std::string why;  ///< one sentence
};

/// The highest bound of every kind, highest first. Never empty.
std::vector<SearchBound> lowerBounds(const SearchModel& model, SearchObjective objective, Patience patience = {});

/// Why no order can respect the limit: the smallest conflicting set on a device; empty when no conflict is known.
/// O(blocks).
Diagnostics whyImpossible(const SearchModel& model, const MemoryLimit& limit, Patience patience = {});

} // namespace pipewright
