// SPDX-License-Identifier: GPL-3.0-or-later
// A plan's design as another tool's configuration or schedule.
#pragma once

#include "core/exchange/exchange.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// Configurations of training frameworks first, then schedules; pictures of a prediction are no matter of plans.
std::vector<const ExportFormat*> planFormats();

/// Replaces the file, and the schedule's beside it where the format names one. Returns what the format leaves out, and
/// the second file. Throws Error.
Diagnostics exportPlan(const Design& design, std::string_view format, const std::string& path);

} // namespace pipewright
