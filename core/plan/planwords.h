// SPDX-License-Identifier: GPL-3.0-or-later
// Why a plan takes as long as it does, in words.
#pragma once

#include "core/design/design.h"
#include "core/predict/predict.h"

#include <string>

namespace pipewright {

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

/// What an Error says first, without its place.
std::string shortReason(const Error& error);

} // namespace pipewright
