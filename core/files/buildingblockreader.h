// SPDX-License-Identifier: GPL-3.0-or-later
// The building block of a design file (its keys: designfile.h), read and unrolled. Faults of the building block, such
// as two passes in one cell, are reported at the line of the pass.
#pragma once

#include "core/buildingblock/buildingblock.h"
#include "core/json/objectreader.h"

#include <vector>

namespace pipewright {

struct BlockReading {
    RepeatedBlock repeated; ///< as written
    Schedule schedule;      ///< without order after a fault
};

/// Faults go into `diagnostics`.
BlockReading readBuildingBlock(const LocatedJson& document, const nlohmann::ordered_json& value,
                               const std::string& pointer, Diagnostics& diagnostics);

/// Elements of a list of whole numbers; one fault for each element that is not a whole number or out of range.
std::vector<int> readIntegers(const LocatedJson& document, const nlohmann::ordered_json& list,
                              const std::string& pointer, int low, int high, Diagnostics& diagnostics);

} // namespace pipewright
