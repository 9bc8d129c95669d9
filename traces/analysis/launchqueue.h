// SPDX-License-Identifier: GPL-3.0-or-later
// How far hosts run ahead of devices in a stretch of a recording. The delay of a kernel or copy is the time from the
// end of the call that launched it to its own start. A stream's queue contains the launched kernels and copies that
// have not begun, as in Holistic Trace Analysis. O(kernels log kernels).
#pragma once

#include "traces/store/launchcalls.h"

#include <string>
#include <vector>

namespace pipewright {

/// For one stream: the kernels and copies that begin in the stretch and whose call was recorded.
struct LaunchQueue {
    int rank = 0, device = 0;
    std::string stream;
    std::int64_t launches = 0;
    Nanoseconds medianDelay = 0, highDelay = 0, longestDelay = 0; ///< `high`: the 95th percentile
    std::int64_t shorterThanCall = 0; ///< kernels that ran shorter than the call that launched them took
    double meanLength = 0;            ///< mean queue length from the first call to the last start
    std::int64_t longest = 0;
    Nanoseconds full = 0; ///< time in which the queue was as long as CUDA allows, so that calls wait too
};
inline constexpr std::int64_t fullLaunchQueue = 1024;

/// By rank, device and stream; streams without a known launch are left out.
std::vector<LaunchQueue> launchQueues(const StoredActivities& trace, const LaunchCalls& launches, Nanoseconds from,
                                      Nanoseconds to);

} // namespace pipewright
