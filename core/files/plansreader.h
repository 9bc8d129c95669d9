// SPDX-License-Identifier: GPL-3.0-or-later
// The plans of stages that groups share, from a design's file. Each is checked against the stages that it names: their
// layers, their group, and the rules that this version knows.
#pragma once

#include "core/design/design.h"
#include "core/json/locatedjson.h"

#include <string>

namespace pipewright {

/// Into `design.plans`; everything else of the design has been read. Faults go into `diagnostics`.
void readPlans(const LocatedJson& document, const nlohmann::ordered_json& list, const std::string& pointer,
               Design& design, Diagnostics& diagnostics);

} // namespace pipewright
