// SPDX-License-Identifier: GPL-3.0-or-later
// A design's stages as the members of its groups run them: every pass in parts that each member does on its own, and
// the collectives between them; what a member keeps; and which pieces of a stage's output go from which member of its
// group to which of the next stage's. program/memberprogram.h makes a Program of it in which every member is a device.
// A device that is no group is a group of one.
#pragma once

#include "core/design/design.h"
#include "core/sharding/memberpasses.h"
#include "core/sharding/sharedstage.h"

#include <array>
#include <vector>

namespace pipewright {

/// Times of one pass of a stage: part i of every member, then collective i; one part more than collectives.
struct PassParts {
    std::vector<std::vector<Nanoseconds>> parts; ///< [part][member]
    std::vector<Nanoseconds> collectives;
    std::vector<Collective> kinds; ///< of the collectives
};

/// A piece of a stage's output on its way between two members, or of that output's gradient on its way back: the
/// elements that `from` has and `to` wants. Both are numbered within their groups.
struct BoundaryPiece {
    int from = 0, to = 0;
    Bytes bytes = 0;
    /// Of the whole tensor, per dimension.
    std::vector<std::int64_t> first, length;
};

struct GroupStage {
    std::array<PassParts, opCount> passes;
    std::vector<StageCosts> members;      ///< bytes per member; times are in `passes`
    std::vector<BoundaryPiece> output;    ///< to the next stage; empty: there is none
    std::vector<BoundaryPiece> gradients; ///< of this output, from the members of the next stage
};

struct GroupStages {
    std::vector<int> membersOfDevice;         ///< per device of the schedule, at least 1
    std::vector<LinkCosts> linkInside;        ///< per device: between its members
    std::vector<GroupStage> stages;           ///< per stage
    std::vector<sharding::SharedStage> plans; ///< per stage; of one member, too
    int members() const;
    /// The first member of a device, numbered over all.
    int firstOf(int device) const;
};

bool hasGroups(const Design& design);

/// What keeps a design with groups from being taken apart: update blocks, skip connections, selective recomputation,
/// replicas, shared parameters, pieces of sequences, buses, host gaps, overlapped pairs. Empty: nothing.
Diagnostics whyNoMembers(const Design& design);

/// Plans every stage for its device's members. Throws Error with whyNoMembers(), and as sharding::SharedStages does.
GroupStages groupStages(const Design& design);

} // namespace pipewright
