// SPDX-License-Identifier: GPL-3.0-or-later
// Times of the ranges that a program opens (record_function, NVTX): per name how often, how long they were open on the
// host, and how long the kernels ran that were launched within them, with communication apart. A launch counts for the
// innermost range. Gloo's ranges launch nothing: they are communication themselves. So parts of a block, such as
// DeepSeek's attn(F), dispatch(B) and mlp(W), get the times that a block's `parts` in a design need. O(slices log
// slices).
#pragma once

#include "traces/store/activitystore.h"

#include <string>
#include <vector>

namespace pipewright {

struct RangeTime {
    std::string name;
    std::int64_t count = 0;
    Nanoseconds host = 0; ///< time that ranges were open
    Nanoseconds computing = 0, communication = 0;
};

/// For ranges that begin in the stretch, those with the longest kernel time first. Step marks of tools are left out.
std::vector<RangeTime> rangeTimes(const StoredActivities& trace, Nanoseconds from, Nanoseconds to);

} // namespace pipewright
