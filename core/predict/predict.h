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
    // Of one step, between devices; stored because an OrderPreview's Program has no operands to count.
    std::int64_t transfers = 0;
    Bytes transferred = 0;
    /// For groups that run member by member: true when the memory (peaks, curves, persistent bytes) is that of each
    /// group's fullest member. Otherwise it is that of the groups' Program, which is only an estimate.
    bool memoryOfMembers = false;
    Nanoseconds membersMakespan = 0; ///< with memoryOfMembers; metrics only estimate it
};

/// Throws Error with every diagnostic when the design cannot run. O(blocks).
Prediction predict(const Design& design);

/// The same for an incomplete schedule; no block waits for an unplaced one. For editing only: such a Program must not
/// be executed.
Prediction predictPlaced(const Design& design);

/// The same in much less memory, for designs of millions of blocks: the Program is an outline (program/outline.h), the
/// timeline has no memory curves; times and metrics are equal.
struct OutlinedPrediction : Prediction {
    bool cannotHang = false; ///< checkDeadlock() would find nothing, whether or not transfers block
    ListsOf listsOf;         ///< null with Curves::NotNeeded
    /// The memory curve of a device, made from its lists alone. O(tasks).
    std::vector<MemorySample> memoryOf(int device) const;
};

enum class Curves : std::uint8_t {
    NotNeeded,
    OneByOne, ///< memoryOf() will be called
};

/// Throws as predict(). A schedule that repeats itself needs 180 bytes a block, with or without curves. O(blocks).
OutlinedPrediction predictOutline(const Design& design, Curves curves = Curves::NotNeeded);

/// The fast path of predictOutline(). Nothing when the design cannot run, does not repeat itself, or has transfers that
/// share a bus.
std::optional<OutlinedPrediction> predictSteady(const Design& design, Curves curves = Curves::NotNeeded);

/// The prediction of the members' Program. Members wait for each other only at collectives, so the step is never longer
/// than that of the groups, whose blocks take as long as their slowest member.
Prediction predictMembers(const MemberProgram& members);

/// Replaces each device's memory in `groups` by that of its group's fullest member, and sets the members' makespan.
/// O(samples of these members).
void takeMembers(Prediction& groups, const Prediction& members, const GroupStages& stages);

} // namespace pipewright
