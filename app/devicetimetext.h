// SPDX-License-Identifier: GPL-3.0-or-later
// Device time by cause (traces/analysis/devicetime.h) and achieved rates (traces/analysis/achievedrates.h) as text and
// as JSON.
#pragma once

#include "app/stretchchoice.h"
#include "traces/analysis/achievedrates.h"
#include "traces/analysis/devicetime.h"

#include <iterator>
#include <vector>

namespace pipewright::app {

inline constexpr DeviceTimeCause allCauses[] = {
    DeviceTimeCause::Computing,  DeviceTimeCause::Communication, DeviceTimeCause::Copies,  DeviceTimeCause::HostGap,
    DeviceTimeCause::BackToBack, DeviceTimeCause::Waiting,       DeviceTimeCause::NotKnown};
static_assert(std::size(allCauses) == deviceTimeCauses);

/// The causes of a table: all but NotKnown, which is a column only where a device has it.
std::vector<DeviceTimeCause> causesOf(const DeviceTimes& times);

Json toJson(const DeviceTimes& times);
void print(const DeviceTimes& times);

Json toJson(const std::vector<AchievedRate>& rates);
void print(const std::vector<AchievedRate>& rates, const Cluster& cluster); ///< nothing when there are none

/// Explains a trace without a design: its step `step` if that is not negative, else the chosen stretch, with so many
/// kernels by name.
void explainActivities(const std::string& path, int step, const StretchChoice& choice, std::size_t kernels, bool json);

} // namespace pipewright::app
