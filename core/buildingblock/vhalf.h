// SPDX-License-Identifier: GPL-3.0-or-later
// V-Half's building block, and the others of arXiv 2405.15362 that fold the model into a V of two chunks per device,
// which balances the lifespans.
#pragma once

#include "core/buildingblock/buildingblock.h"

namespace pipewright {

// Live chunks on every device: about 2p/3, p and 2p.
BuildingBlock vMinBlock(int devices);
BuildingBlock vHalfBlock(int devices);
BuildingBlock vZeroBubbleBlock(int devices);
/// The same V with a full backward, 2/3 of the memory of 1F1B.
BuildingBlock oneF1BVBlock(int devices);

} // namespace pipewright
