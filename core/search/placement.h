// SPDX-License-Identifier: GPL-3.0-or-later
// Which device holds which stage, by the shapes that published schedules have, and a design with another placement
// and another cut of its layers. Orders of the blocks come later: a design made here does one microbatch after the
// other, which is legal everywhere and needs the least memory. O(stages), a design O(blocks).
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

/// The device of every stage. `Given` and `Free` have none of their own: empty.
std::vector<int> placementOf(PlacementShape shape, int devices);

/// Orders the blocks one microbatch after the other; what needs the least memory.
void placeInTurn(Schedule& schedule);

/// The design with these stages on these devices: costs of a formula are computed anew, given or measured times
/// follow the layers wherever they go. Pins and building block are dropped. Throws Error: no model, a skip
/// connection (its stages have no meaning in another cut), or layers that do not add up.
Design withPlacement(const Design& base, const std::vector<int>& deviceOfStage, const std::vector<int>& layersPerStage,
                     sharding::SharedStages* known = nullptr);

} // namespace pipewright
