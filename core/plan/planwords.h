// SPDX-License-Identifier: GPL-3.0-or-later
// Plans in words: what they are, and why they take as long as they do.
#pragma once

#include "core/design/design.h"
#include "core/plan/planspace.h"
#include "core/predict/predict.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pipewright {

std::string degreesText(const PlanSetting& setting); ///< "tensor 8, pipeline 4, data 2"
std::string memoryText(const PlanSetting& setting);  ///< "ZeRO 3, freed, recompute full"; empty: nothing is done for it
std::string scheduleText(const Family& family, int chunks); ///< "Interleaved 1F1B, 4 chunks"

/// "tensor 8, data 2, 16 × 1, Interleaved 1F1B, 4 chunks, ZeRO 1": the plan in one line.
std::string planName(const PlanSetting& setting, const Family& family, int chunks);

/// The parts of a step: they add up to it.
struct StepShares {
    Nanoseconds step = 0;
    Nanoseconds work = 0;      ///< of all devices' blocks and updates, the mean
    Nanoseconds imbalance = 0; ///< of the device that has most of them, the rest
    Nanoseconds idle = 0;      ///< of that device
    int busiest = 0;
    bool busiestHasHead = false;
};
StepShares sharesOf(const Design& design, const Prediction& prediction);

/// "works 91.2 % of its step, 2.1 % of that imbalance (device 7, which holds the head), idle 6.7 %"; with `first`
/// before it, how much longer it takes than that and which part makes most of it.
std::string whyText(const StepShares& shares, const StepShares* first);

/// Why plans were refused, and how many: the reason that refused most first.
std::vector<std::pair<std::int64_t, std::string>> byCount(const std::map<std::string, std::int64_t>& reasons);

/// What an Error says first, without its place.
std::string shortReason(const Error& error);

} // namespace pipewright
