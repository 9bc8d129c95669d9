// SPDX-License-Identifier: GPL-3.0-or-later
// The last step from a building block to a schedule (arXiv 2405.15362, section 4): in the warm-up and cool-down of a
// repeated building block a later pass moves into an earlier idle cell if its data is there and the peak of live
// activations does not rise. The steady state stays as it is.
#pragma once

#include "core/buildingblock/unitgrid.h"

namespace pipewright {

/// For F, I and W of one unit each: places W anew before a first sweep (warm-up and cool-down), and again after a
/// second one (cool-down) that runs without W. O(passes + cells crossed by moves).
UnitGrid reorderSplit(UnitGrid grid, bool sharePeak);

/// For F and full B: every pass moves to the earliest idle cells that fit, F only as far as memory allows. Same cost.
UnitGrid reorderFull(UnitGrid grid, bool sharePeak);

} // namespace pipewright
