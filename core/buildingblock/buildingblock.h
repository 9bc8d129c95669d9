// SPDX-License-Identifier: GPL-3.0-or-later
// Building blocks (Pipeline Parallelism with Controllable Memory, arXiv 2405.15362): the passes of one
// microbatch over all stages, at whole times, stamped again every `interval`. A block tells beforehand what
// the steady state of its schedule needs: it runs without collision when no two passes of a device meet
// modulo the interval, and a stage that holds an activation for a lifespan l has at most ceil(l / T) alive.
// unroll() makes it a schedule: repeat, squeeze, reorder. Checks cost O(passes).
#pragma once

#include "core/base/diagnostic.h"
#include "core/schedule/schedule.h"

#include <string>
#include <vector>

namespace pipewright {

struct BuildingBlock {
    struct Pass {
        Op op = Op::F;
        int stage = 0;
        int start = 0; ///< in units of the block's own time; passes are taken to last whole units
        int length = 1;

        int end() const { return start + length; }
        bool operator==(const Pass&) const = default;
    };

    std::string name;
    std::vector<int> deviceOfStage;
    BackwardStyle backward = BackwardStyle::Split;
    int interval = 0;         ///< T: a new microbatch every T units
    std::vector<Pass> passes; ///< of one microbatch, any order

    int stages() const { return static_cast<int>(deviceOfStage.size()); }
    int devices() const;
    bool operator==(const BuildingBlock&) const = default;
};

/// Errors: a missing or doubled pass, a pass before its data, two passes of a device in one cell modulo T.
/// Warnings: cells of a device that no pass fills, a bubble that returns with every microbatch.
Diagnostics checkBlock(const BuildingBlock& block);

/// From the start of a stage's F to the end of its W (B), in units.
int lifespan(const BuildingBlock& block, int stage);

/// Per device the sum of ceil(lifespan / T) over its stages: activations, in chunks, that its schedule holds at most.
std::vector<int> liveBound(const BuildingBlock& block);

/// Puts the W of every I into the first cell modulo T that is free on its device from the end of the I on, in
/// the order of the gradient. For blocks that leave W open; throws Error when a device has no cell left.
void placeWeightGrads(BuildingBlock& block);

struct UnrollOptions {
    /// Off: repeat and squeeze only, every device in the order of the stamped block.
    bool reorder = true;
    /// Reordering never exceeds the peak of the stamped block: of the fullest device, or of each device its own.
    bool sharePeak = true;
    /// Leave the order as stamped where reordering, a greedy, would lengthen the span. Off: as published.
    bool keepShorter = true;
};

/// A complete schedule of `microbatches`. Reordering moves the passes of warm-up and cool-down into earlier
/// holes (reorder.h). Throws Error with checkBlock()'s errors. The family is "custom".
Schedule unroll(const BuildingBlock& block, int microbatches, const UnrollOptions& options = {});

/// A block as a person writes it: W may be left open, and it says how often it repeats.
struct RepeatedBlock {
    BuildingBlock block;
    int microbatches = 0;
    bool reorder = true; ///< see UnrollOptions
    bool operator==(const RepeatedBlock&) const = default;
};

/// The block with the W that it leaves open: placeWeightGrads() when the backward is split and it has no W.
BuildingBlock completed(const RepeatedBlock& repeated);

/// Its schedule. Throws Error as unroll() and placeWeightGrads() do, and when the stamped block would be larger
/// than maxBlocks in passes or in cells.
Schedule unroll(const RepeatedBlock& repeated);

} // namespace pipewright
