// SPDX-License-Identifier: GPL-3.0-or-later
// Where the times of stages come from that follow from rates by operation and shape (core/rates): how much of each is
// of shapes that were measured, how much lies between such, and how much nobody measured.
#pragma once

#include "core/design/design.h"
#include "core/design/membertimes.h"

#include <memory>
#include <string>
#include <vector>

namespace pipewright {

/// Of each stage the seconds of F, I and W of one microbatch, its exchanges within a group included. Empty where times
/// are not by formula, or no device has rates. O(layers).
std::vector<PassOrigins> rateOrigins(const Design& design);

/// The files of rates that they come from, each once: its `origin` says who measured them, and where.
std::vector<std::shared_ptr<const OperationRates>> ratesOf(const Design& design);

/// Shares of all stages together: "81 % of shapes that were measured, 17 % between such, 2 % by efficiency"; empty
/// where rateOrigins() is.
std::string rateOriginsText(const Design& design);

} // namespace pipewright
