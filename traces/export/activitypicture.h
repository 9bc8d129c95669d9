// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of another tool's trace as SVG: its streams over time, each pixel what runs longest in it, and where the
// devices' time went as one bar each. As large as their pixels, however many slices there are.
#pragma once

#include "traces/analysis/devicetime.h"

#include <string>

namespace pipewright {

/// Streams of devices (threads, when there are none), at most 48. Throws nothing.
std::string activitySvg(const StoredActivities& trace, Nanoseconds from, Nanoseconds to);
std::string deviceTimeSvg(const DeviceTimes& times);

} // namespace pipewright
