// SPDX-License-Identifier: GPL-3.0-or-later
// Where the devices of another tool's trace spent their time (traces/analysis/devicetime.h), and how fast a run was
// against its ceilings (traces/analysis/achievedrates.h), as text for people and as JSON.
#pragma once

#include "app/command.h"
#include "traces/analysis/achievedrates.h"
#include "traces/analysis/devicetime.h"

namespace pipewright::app {

Json toJson(const DeviceTimes& times);
void print(const DeviceTimes& times);

Json toJson(const std::vector<AchievedRate>& rates);
void print(const std::vector<AchievedRate>& rates); ///< nothing when there are none

/// Explains a trace that holds no design: the whole, or its step number `step` when that is not below 0.
void explainActivities(const std::string& path, int step, bool json);

} // namespace pipewright::app
