// SPDX-License-Identifier: GPL-3.0-or-later
// Variation between a recording's steps: their lengths, the spread of each task's duration, and the typical step with
// the median start and end of every task. A task never starts before its dependencies end in any step, so this holds
// for the typical step too.
#pragma once

#include "traces/store/tracereader.h"

namespace pipewright {

/// The first step is warm-up and left out if there are others. An outlier's distance from the median is more than five
/// times the median distance, and more than a twentieth of the median; with fewer than four steps there are no
/// outliers.
struct StepLengths {
    struct Outlier {
        int step = 0;
        Nanoseconds length = 0;
        bool operator==(const Outlier&) const = default;
    };
    std::int64_t steps = 0;
    Nanoseconds shortest = 0, median = 0, longest = 0;
    Nanoseconds spread = 0; ///< between the 10th and the 90th percentile
    std::vector<Outlier> outliers{};
    std::vector<int> typical{}; ///< all other steps; typical values are computed from these
};
StepLengths stepLengths(const std::vector<StepRecord>& steps);
/// The same for exactly these steps, the first one included.
StepLengths lengthsOf(const std::vector<StepRecord>& steps);

/// How long a device's thread waited for a processor core in a step, on average; in the typical steps' median for -1;
/// -1 where it was not recorded.
Nanoseconds coreWaitIn(const std::vector<StepRecord>& steps, int step);

struct StepVariation {
    std::vector<Nanoseconds> spread; ///< per task: between the 10th and the 90th percentile of its durations
    Timeline typical;                ///< without outliers; times since the step's beginning; without memory curves
};

/// From at most 24 steps after the first. Throws Error. O(steps x tasks).
StepVariation stepVariation(const TraceReader& trace, const Program& program);

} // namespace pipewright
