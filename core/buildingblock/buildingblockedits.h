// SPDX-License-Identifier: GPL-3.0-or-later
// Edits of a building block by hand, and its conflicts as indices instead of the sentences of checkBlock(), so that an
// editor can mark them. Invalid building blocks are allowed as intermediate states. At most O(passes²), for some
// hundred passes.
#pragma once

#include "core/buildingblock/buildingblock.h"

#include <vector>

namespace pipewright {

/// Two conflicting passes; indices into BuildingBlock::passes.
struct PassConflict {
    enum class Kind {
        Early, ///< `pass` starts before `other`, whose data it takes, ends
        Meets, ///< both take the same cell of their device modulo the interval
    };
    Kind kind = Kind::Early;
    int pass = 0;
    int other = 0; ///< the pass itself when it is longer than the interval
    bool operator==(const PassConflict&) const = default;
};

/// Every conflict, by pass. Needs a positive interval and stages and starts in range.
std::vector<PassConflict> conflictsOf(const BuildingBlock& block);

/// The pass in each cell of each device modulo the interval, as an index, or -1. In a collision the first one of the
/// block.
std::vector<std::vector<int>> cellsModuloInterval(const BuildingBlock& block);

/// The block with pass `pass` starting at `start` (at least 0).
BuildingBlock withStart(BuildingBlock block, int pass, int start);

/// The first start at or after `from` with the pass's data present and no collision; `from` when no cell is free.
int firstFreeStart(const BuildingBlock& block, int pass, int from = 0);

/// The building block with `stage` on another device. Throws Error for an unknown device, or when its old device would
/// have no stage left.
BuildingBlock withStageOn(BuildingBlock block, int stage, int device);

/// The building block with the other backward style: B becomes I followed by W, or the reverse.
BuildingBlock withBackward(BuildingBlock block, BackwardStyle style);

/// Busy units of every device in one interval.
std::vector<int> workPerInterval(const BuildingBlock& block);

} // namespace pipewright
