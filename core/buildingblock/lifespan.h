// SPDX-License-Identifier: GPL-3.0-or-later
// How long a building block keeps a stage's activations, and the lifespan bound on memory that follows: with a new
// microbatch every T units, a stage with lifespan l has at most ceil(l / T) alive (arXiv 2405.15362).
#pragma once

#include "core/buildingblock/buildingblock.h"

namespace pipewright {

/// From the start of a stage's F to the end of its W (B), in units.
int lifespan(const BuildingBlock& block, int stage);

/// Per device the sum of ceil(lifespan / T) over its stages: an upper bound of live activations, in chunks.
std::vector<int> liveBound(const BuildingBlock& block);

} // namespace pipewright
