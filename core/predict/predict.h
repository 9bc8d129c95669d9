// SPDX-License-Identifier: GPL-3.0-or-later
// Design -> Program, Timeline and Metrics in one call: what the command line prints and the designer shows.
#pragma once

#include "core/design/design.h"
#include "core/predict/bubbles.h"
#include "core/program/memberprogram.h"
#include "core/program/outline.h"

#include <optional>

namespace pipewright {

struct Prediction {
    Program program;
    Timeline timeline; ///< with memory curves
    Metrics metrics;
    // Of one step, between devices; counted once, since an OrderPreview has no operands to add up.
    std::int64_t transfers = 0;
    Bytes transferred = 0;
    /// Of groups that run member by member: whether the memory (peaks, curves, what stays all the time) is that of each
    /// group's fullest member. Otherwise it is of the groups' own Program, which only estimates it.
    bool memoryOfMembers = false;
    Nanoseconds membersMakespan = 0; ///< with that: of what the members run, which metrics and timeline only estimate
};

/// Throws Error with every diagnostic when the design cannot run. O(blocks).
Prediction predict(const Design& design);

/// The same for the blocks that are placed while others still lie in the tray; no block waits for an
/// unplaced one. For editors: such a Program must not be executed.
Prediction predictPlaced(const Design& design);

/// The same in much less memory, for designs of millions of blocks: the Program is an outline (program/outline.h), the
/// timeline has no memory curves; times and metrics are equal.
struct OutlinedPrediction : Prediction {
    bool cannotHang = false; ///< checkDeadlock() would find nothing, whether or not transfers block
    ListsOf listsOf;         ///< null: no curves were asked for
    /// The memory curve of a device, made from its lists alone. O(tasks).
    std::vector<MemorySample> memoryOf(int device) const;
};

enum class Curves : std::uint8_t {
    NotNeeded,
    OneByOne, ///< memoryOf() will be called
};

/// Throws as predict(). Of a schedule that repeats itself 180 bytes a block, with curves or without. O(blocks).
OutlinedPrediction predictOutline(const Design& design, Curves curves = Curves::NotNeeded);

/// The quick way to it. Nothing where the design cannot run, does not repeat itself, or has transfers that share a bus.
std::optional<OutlinedPrediction> predictSteady(const Design& design, Curves curves = Curves::NotNeeded);

/// Of what the members of groups run. They wait for each other at collectives only, so the step is never longer than
/// that of the groups, whose blocks are as long as their slowest members'.
Prediction predictMembers(const MemberProgram& members);

/// Of every device of a design's own prediction the memory of its group's fullest member, and the members' makespan.
/// O(samples of those).
void takeMembers(Prediction& groups, const Prediction& members, const GroupStages& stages);

} // namespace pipewright
