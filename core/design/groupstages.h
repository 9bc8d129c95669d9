// SPDX-License-Identifier: GPL-3.0-or-later
// A design's stages as the members of its groups run them: every pass as parts that each member runs on its own with
// collectives between them, the bytes of each member, and the pieces of a stage's output that each member sends to
// members of the next stage's group. program/memberprogram.h makes a Program of it in which every member is a device. A
// single device counts as a group of one.
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

/// A piece of a stage's output, or of its gradient, that one member sends to another: the elements that `from` holds
/// and `to` needs. Both are numbered within their groups.
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

/// The values that one stage sends to another, along the chain or as a skip connection.
struct StageEdge {
    int from = 0, to = 0; ///< copies, as GroupStages::copyOf() numbers them
    bool skip = false;
    std::vector<BoundaryPiece> output, gradients; ///< forward, and backward from the members of `to`
};

/// Parameters for which two copies of stages each have a gradient and update with the sum: a tied head and embedding,
/// or a stage in two replicas. Also a complete sum over replicas that one copy sends to another (`replaces`).
struct SharedSum {
    struct Parameter {
        int ofRoot = 0, ofOther = 0; ///< tensors of the two plans' graphs
        std::vector<BoundaryPiece> toRoot, toOther;
    };
    int root = 0, other = 0;           ///< copies
    std::vector<Parameter> parameters; ///< none with a sharded optimizer state: see memberstepend.h
    bool replaces = false;             ///< the root's sum replaces the other's; nothing is sent to the root
    /// The bytes that member `from` of one side sends to member `to` of the other.
    Bytes bytes(bool toRoot, int from, int to) const;
};

struct GroupStages {
    std::vector<int> membersOfDevice;  ///< per device of the schedule, at least 1
    std::vector<LinkCosts> linkInside; ///< per device: between its members
    int perReplica = 0;                ///< stages
    int sequencePieces = 1;
    // Per copy of a stage, those of replica 0 first.
    std::vector<int> deviceOfCopy;
    std::vector<GroupStage> stages;
    std::vector<sharding::SharedStage> plans; ///< of one member, too
    std::vector<StageEdge> edges;             ///< per copy, the edges of the chain first
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

/// Why a design with groups cannot be divided into members: weights that devices hand on, selective recomputation,
/// buses, host gaps, overlapped pairs, or an optimizer state that is sharded over replicas with different groups.
/// Empty: it can.
Diagnostics whyNoMembers(const Design& design);

/// True when the design has groups and nothing prevents running it member by member.
bool runsMemberByMember(const Design& design);

/// Plans every stage for its device's members. Throws Error with whyNoMembers(), and as sharding::SharedStages does.
GroupStages groupStages(const Design& design);

} // namespace pipewright
