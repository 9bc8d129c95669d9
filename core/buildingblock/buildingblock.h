// SPDX-License-Identifier: GPL-3.0-or-later
// Building blocks (Pipeline Parallelism with Controllable Memory, arXiv 2405.15362): the passes of one microbatch over
// all stages at integer times, repeated every `interval`. A building block determines its steady state: there is no
// collision when no two passes of a device overlap modulo the interval, and a stage with lifespan l has at most ceil(l
// / T) activations alive. unroll() makes a schedule: repeat, squeeze, reorder. Checks cost O(passes).
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
        int start = 0; ///< in units of the building block's time; durations are whole units
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

/// Errors: a missing or duplicate pass, a pass before its data, two passes of a device in one cell modulo T. Warnings:
/// idle cells, a bubble that recurs with every microbatch.
Diagnostics checkBlock(const BuildingBlock& block);

/// Puts the W of every I into the first free cell modulo T of its device after the I, in the order of the gradients.
/// For building blocks without W; throws Error when a device has no free cell.
void placeWeightGrads(BuildingBlock& block);

struct UnrollOptions {
    /// Off: repeat and squeeze only, in the order of the building block.
    bool reorder = true;
    /// Reordering never exceeds the peak before it. On: the peak of the fullest device; off: that of each device.
    bool sharePeak = true;
    /// Keep the order where greedy reordering would lengthen the span. Off: as published.
    bool keepShorter = true;
};

/// A complete schedule of `microbatches`. Reordering moves the passes of warm-up and cool-down into earlier
/// holes (reorder.h). Throws Error with checkBlock()'s errors. The family is "custom".
Schedule unroll(const BuildingBlock& block, int microbatches, const UnrollOptions& options = {});

/// A building block as written by hand: W may be missing; with the number of repetitions.
struct RepeatedBlock {
    BuildingBlock block;
    int microbatches = 0;
    bool reorder = true; ///< see UnrollOptions
    bool operator==(const RepeatedBlock&) const = default;
};

/// Adds missing W: placeWeightGrads() when the backward is split and there is no W.
BuildingBlock completed(const RepeatedBlock& repeated);

/// The schedule of a repeated block. Throws Error as unroll() and placeWeightGrads() do, and when the repeated block
/// exceeds maxBlocks passes or cells.
Schedule unroll(const RepeatedBlock& repeated);

} // namespace pipewright
