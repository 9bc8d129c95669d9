// SPDX-License-Identifier: GPL-3.0-or-later
// The last step from a building block to a schedule (arXiv 2405.15362, section 4): warm-up and cool-down of a
// stamped block are full of holes, and a later pass may move into an earlier hole if its data is there and
// the peak of live activations does not rise. The steady state between them stays as the block has it.
#pragma once

#include "core/buildingblock/unitgrid.h"

namespace pipewright {

/// For blocks with F, I and W of one unit each: places W anew twice, once among the passes that move (warm-up
/// and cool-down) and once after all else has moved (cool-down). O(passes) plus the moves, each
/// of which looks at the cells that it crosses.
UnitGrid reorderSplit(UnitGrid grid, bool sharePeak);

/// For blocks with F and full B: every pass goes to the earliest hole it fits into, F only as far as memory
/// allows. Same cost.
UnitGrid reorderFull(UnitGrid grid, bool sharePeak);

} // namespace pipewright
