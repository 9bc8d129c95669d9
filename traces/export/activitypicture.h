// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of an imported trace as SVG: its streams over time, each pixel in the colour of its longest slice, and a bar
// per device with its time by cause. The size is O(pixels).
#pragma once

#include "traces/analysis/devicetime.h"

#include <string>

namespace pipewright {

/// Streams of devices (threads, when there are none), at most 48. Throws nothing.
std::string activitySvg(const StoredActivities& trace, Nanoseconds from, Nanoseconds to);
std::string deviceTimeSvg(const DeviceTimes& times);

} // namespace pipewright
