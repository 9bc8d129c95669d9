// SPDX-License-Identifier: GPL-3.0-or-later
// What no schedule can beat: lower bounds on the span and on the makespan, each with the reason in words. They are
// counts of what a device must do, what it may not yet do for want of memory, and how long a microbatch is away
// from it; no schedule is made. A schedule that meets one is best, however it was found.
//
// The strongest looks at one device d from the first block to the last input gradient (or backward):
//   - before its first gradient arrives it can only run as many forwards as fit into memory (warm-up);
//   - after its last forward the last microbatch is away, and only what was live then can be worked on (cool-down);
//   - the weight gradients that memory does not let it put off are behind it.
// Another device waits for the way down to d before and for the way back up after that. O(devices² + tasks).
#pragma once

#include "core/search/searchmodel.h"

#include <string>
#include <vector>

namespace pipewright {

struct SearchBound {
    Nanoseconds value = 0;
    int device = 0;   ///< whose time it bounds
    std::string name; ///< "work", "memory", "way", "area", "rounds", "path"
    std::string why;  ///< one sentence
};

/// Of every kind the highest one, highest first. Never empty.
std::vector<SearchBound> lowerBounds(const SearchModel& model, SearchObjective objective);

/// Why no order at all can respect the limit, by the smallest set of things that conflict on a device; empty when
/// nothing is known against it. Compiles one microbatch.
Diagnostics whyImpossible(const Design& design, const SearchModel& model, const MemoryLimit& limit);

} // namespace pipewright
