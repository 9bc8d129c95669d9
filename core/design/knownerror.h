// SPDX-License-Identifier: GPL-3.0-or-later
// How far predictions have been from runs that were measured, by where a design's times come from: what a reader may
// expect of this one. The runs and their commands are listed on the pages that are named. Tests make the figures anew.
#pragma once

#include "core/design/design.h"
#include "core/rates/operationrates.h"

#include <optional>
#include <string>

namespace pipewright {

/// Of a step's time. Nothing where no such run was compared: times that were given, rates that nobody checked, devices
/// of several kinds.
std::optional<CheckedRuns> knownError(const Design& design);

/// Of the ratio of two schedules' steps that have the same times of blocks. Two that are closer than its median are
/// called alike.
const CheckedRuns& knownErrorOfSchedules();

/// "off by 8.2 % in the median and by 14.7 % at most, over 15 measured steps (Megatron-LM on B200, …)".
std::string textOf(const CheckedRuns& error);

} // namespace pipewright
