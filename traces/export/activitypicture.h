// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of an imported trace as SVG: its streams over time, each pixel in the colour of its longest slice, and one
// bar per device of its time by cause. O(pixels) in size.
#pragma once

#include "traces/analysis/devicetime.h"

#include <string>

namespace pipewright {

/// Streams of devices (threads, when there are none), at most 48. Throws nothing.
std::string activitySvg(const StoredActivities& trace, Nanoseconds from, Nanoseconds to);
std::string deviceTimeSvg(const DeviceTimes& times);

} // namespace pipewright
