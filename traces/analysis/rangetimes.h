// SPDX-License-Identifier: GPL-3.0-or-later
// What was launched within the ranges that a program opens (record_function, NVTX): by name how often, how long they
// were open on the host, and how long the kernels ran whose launch lies in them, apart what communicates. A launch
// counts for the innermost range. So the parts of a block, such as DeepSeek's attn(F), dispatch(B) and mlp(W), have the
// times that a block's `parts` in a design take. O(slices log slices).
#pragma once

#include "traces/store/activitystore.h"

#include <string>
#include <vector>

namespace pipewright {

struct RangeTime {
    std::string name;
    std::int64_t count = 0;
    Nanoseconds host = 0; ///< open
    Nanoseconds computing = 0, communication = 0;
};

/// Of ranges that begin in the stretch, those with the longest kernels first. Marks of tools are left out.
std::vector<RangeTime> rangeTimes(const StoredActivities& trace, Nanoseconds from, Nanoseconds to);

} // namespace pipewright
