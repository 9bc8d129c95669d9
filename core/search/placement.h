// SPDX-License-Identifier: GPL-3.0-or-later
// The placement shapes of published schedules, and designs with another placement and another cut of the layers.
// Designs made here run one microbatch after the other, which is always legal and needs the least memory; the search
// orders them. O(stages), a design O(blocks).
#pragma once

#include "core/design/design.h"

#include <string_view>
#include <vector>

namespace pipewright {

namespace sharding {
class SharedStages;
}

enum class PlacementShape {
    Given,  ///< as the design has it
    Linear, ///< one stage per device
    Looped, ///< two rounds: 0 1 2 3 0 1 2 3
    V,      ///< down and up: 0 1 2 3 3 2 1 0
    Wave,   ///< down and up twice
    Free    ///< any: starts from each of the others
};

std::string_view nameOf(PlacementShape shape); ///< "linear", …

/// The device of every stage; empty for `Given` and `Free`.
std::vector<int> placementOf(PlacementShape shape, int devices);

/// Orders the blocks one microbatch after the other, which needs the least memory.
void placeInTurn(Schedule& schedule);

/// The design with these stages on these devices. Formula costs are recomputed; given or measured times follow their
/// layers. Pins and building block are dropped. Throws Error: no model, a skip connection (its stages have no meaning
/// in another cut), or layers that do not add up.
Design withPlacement(const Design& base, const std::vector<int>& deviceOfStage, const std::vector<int>& layersPerStage,
                     sharding::SharedStages* known = nullptr);

} // namespace pipewright
