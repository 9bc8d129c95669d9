// SPDX-License-Identifier: GPL-3.0-or-later
// How much a recording's steps differ from one another: their lengths, how far each task's duration varies, and the
// typical step, in which every task starts and ends at the median of all steps. Since a task never starts before what
// it waits for ends in any step, it does not in the typical one either: it is a step that could have been recorded.
#pragma once

#include "traces/store/tracereader.h"

namespace pipewright {

/// The first step, warm-up, is left out wherever there are others.
struct StepLengths {
    std::int64_t steps = 0;
    Nanoseconds shortest = 0, median = 0, longest = 0;
    Nanoseconds spread = 0; ///< between the 10th and the 90th percentile
};
StepLengths stepLengths(const std::vector<StepRecord>& steps);

struct StepVariation {
    std::vector<Nanoseconds> spread; ///< per task: between the 10th and the 90th percentile of its durations
    Timeline typical;                ///< times since the step's beginning; without memory curves
};

/// Of the steps after the first, at most 24 of them: more would only take longer. Throws Error. O(steps x tasks).
StepVariation stepVariation(const TraceReader& trace, const Program& program);

} // namespace pipewright
