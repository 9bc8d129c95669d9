// SPDX-License-Identifier: GPL-3.0-or-later
// A member of a group as GroupTraining has it: its computation, and where its parameters, their gradients and the
// optimizer's state are.
#pragma once

#include "executor/sharding/groupmember.h"
#include "executor/sharding/grouptraining.h"

#include <memory>
#include <span>

namespace pipewright::sharding {

struct GroupTraining::Member {
    GroupMember work;
    StageOptimizer optimizer;
    MemberDevice* device;                       ///< null: another process's
    ReplicaShare share;                         ///< parameters that are updated here: all, or its replica's share
    Region parameters;                          ///< as they are stored
    std::span<float> masters, gradients, state; ///< empty: another process's. Masters: the parameters in fp32, in bf16
                                                ///< of the share only
    BufferId mastersBuffer = none, gradientsBuffer = none;

    /// The stored parameters of a share.
    std::span<std::byte> storedOf(ReplicaShare of) const
    {
        return {parameters.data + work.bytesOf(static_cast<std::size_t>(of.begin)),
                static_cast<std::size_t>(work.bytesOf(static_cast<std::size_t>(of.count())))};
    }
    std::span<float> mastersOfShare() const { return work.isNarrow() ? masters : masters.subspan(begin(), updated()); }
    std::size_t begin() const { return static_cast<std::size_t>(share.begin); }
    std::size_t updated() const { return static_cast<std::size_t>(share.count()); }
    std::unique_ptr<MemberData> data;  ///< null: another process's
    std::span<std::int32_t> choices{}; ///< room for choices still to come in its block; empty: they are not kept
};

} // namespace pipewright::sharding
