// SPDX-License-Identifier: GPL-3.0-or-later
// Where a design's predicted times come from, and how far such predictions have been from measured runs, as text and as
// JSON: of `predict` and `explain`.
#pragma once

#include "app/command.h"
#include "core/rates/operationrates.h"
#include "core/search/tradeoffs.h"

namespace pipewright::app {

/// Below "costs: …": what is estimated, the rates and who measured them, and the error of such predictions.
void printOrigins(const Design& design);

/// "costs" of both commands.
Json originsToJson(const Design& design);

Json toJson(const CheckedRuns& error);

/// Those that the known error of schedules does not tell from the first, which has the shortest step; not the first
/// itself. They have the costs of one design.
std::vector<const TradeOff*> alikeWithFirst(const std::vector<TradeOff>& ranked);

} // namespace pipewright::app
