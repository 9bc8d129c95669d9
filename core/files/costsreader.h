// SPDX-License-Identifier: GPL-3.0-or-later
// The costs of a design file: times and bytes per stage, links, gaps of the host, and where each of them comes from.
#pragma once

#include "core/design/costs.h"
#include "core/json/objectreader.h"

namespace pipewright {

/// The costs of a schedule of `stages` stages. Faults go into `diagnostics`.
Costs readCosts(const LocatedJson& document, const nlohmann::ordered_json& value, int stages, Diagnostics& diagnostics);

} // namespace pipewright
