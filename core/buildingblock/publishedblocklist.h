// SPDX-License-Identifier: GPL-3.0-or-later
// The published building blocks by the name of the family they unroll to: the starting points of the editor. A table
// over publishedblocks.h and vhalf.h.
#pragma once

#include "core/buildingblock/buildingblock.h"

#include <optional>
#include <span>
#include <string_view>

namespace pipewright {

struct PublishedBlock {
    std::string_view family; ///< the name of a family
    std::string_view title;  ///< as in the papers
    BuildingBlock (*make)(int devices, int microbatches);
};

std::span<const PublishedBlock> publishedBlocks();

/// The building block that a family repeats; nothing for other families.
std::optional<BuildingBlock> blockOfFamily(std::string_view family, int devices, int microbatches);

} // namespace pipewright
