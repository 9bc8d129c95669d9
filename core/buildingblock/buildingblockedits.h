// SPDX-License-Identifier: GPL-3.0-or-later
// Editing a building block by hand: what an edit gives, and which passes are in each other's way, as indices
// rather than as sentences (checkBlock()), so that an editor can show them where they stand. Faulty blocks are
// fine here: a person passes through them on the way to a good one. At most O(passes^2), of some hundred passes.
#pragma once

#include "core/buildingblock/buildingblock.h"

#include <vector>

namespace pipewright {

/// Two passes that cannot both be as they are; indices into BuildingBlock::passes.
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

/// What takes each cell of each device modulo the interval: index into passes, or -1. Of passes that meet, the
/// one that comes first in the block.
std::vector<std::vector<int>> cellsModuloInterval(const BuildingBlock& block);

/// The block with pass `pass` starting at `start` (at least 0).
BuildingBlock withStart(BuildingBlock block, int pass, int start);

/// The first start at or after `from` at which the pass has its data and meets no other; `from` itself when
/// the interval leaves no free cell.
int firstFreeStart(const BuildingBlock& block, int pass, int from = 0);

/// The block with `stage` on another device. Throws Error when there is no such device, or when the stage is
/// the last one of its own: every device keeps a stage.
BuildingBlock withStageOn(BuildingBlock block, int stage, int device);

/// The block with full backwards for split ones, or split for full: B becomes I with the W behind it, and back.
BuildingBlock withBackward(BuildingBlock block, BackwardStyle style);

/// Busy units of every device in one interval.
std::vector<int> workPerInterval(const BuildingBlock& block);

} // namespace pipewright
