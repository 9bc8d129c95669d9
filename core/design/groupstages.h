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
    std::vector<StageCosts> members; ///< bytes per member; times are in `passes`
};

/// What one stage hands to another, along the chain or as a skip connection.
struct StageEdge {
    int from = 0, to = 0; ///< copies, as GroupStages::copyOf() numbers them
    bool skip = false;
    std::vector<BoundaryPiece> output, gradients; ///< forwards, and back from the members of `to`
};

/// Parameters of which two copies of stages each have a gradient, and update with the sum of both: a head that is the
/// embedding, or a stage of two replicas. Or a sum over replicas that one has and sends to the other.
struct SharedSum {
    struct Parameter {
        int ofRoot = 0, ofOther = 0; ///< tensors of the two plans' graphs
        std::vector<BoundaryPiece> toRoot, toOther;
    };
    int root = 0, other = 0;           ///< copies
    std::vector<Parameter> parameters; ///< none where replicas share the optimizer's state out: memberstepend.h has it
    bool replaces = false;             ///< the root's sum takes the place of the other's; nothing goes to the root
    /// What member `from` of one side sets out for member `to` of the other.
    Bytes bytes(bool toRoot, int from, int to) const;
};

struct GroupStages {
    std::vector<int> membersOfDevice;  ///< per device of the schedule, at least 1
    std::vector<LinkCosts> linkInside; ///< per device: between its members
    int perReplica = 0;                ///< stages
    // Per copy of a stage, of replica 0 first.
    std::vector<int> deviceOfCopy;
    std::vector<GroupStage> stages;
    std::vector<sharding::SharedStage> plans; ///< of one member, too
    std::vector<StageEdge> edges;             ///< of a copy those of the chain first
    std::vector<SharedSum> sums;
    int members() const;
    /// The first member of a device, numbered over all.
    int firstOf(int device) const;
    int copyOf(int stage, int replica) const { return replica * perReplica + stage; }
    int membersOf(int copy) const
    {
        return membersOfDevice[static_cast<std::size_t>(deviceOfCopy[static_cast<std::size_t>(copy)])];
    }
};

/// The edges that end at a copy of a stage, and those that begin there.
struct CopyEdges {
    std::vector<const StageEdge*> in, out;
    CopyEdges() = default;
    CopyEdges(const GroupStages& groups, int copy);
};

bool hasGroups(const Design& design);

/// What keeps a design with groups from being taken apart: update blocks, selective recomputation, pieces of sequences,
/// buses, host gaps, overlapped pairs; a shared optimizer state of replicas whose groups are unlike. Empty: nothing.
Diagnostics whyNoMembers(const Design& design);

/// It has groups, and nothing of it forbids that their members run, each on its own.
bool runsMemberByMember(const Design& design);

/// Plans every stage for its device's members. Throws Error with whyNoMembers(), and as sharding::SharedStages does.
GroupStages groupStages(const Design& design);

} // namespace pipewright
