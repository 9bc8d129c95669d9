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
    StageOptimizer optimizer;           ///< of the parameters that are updated here: all, or its replica's share
    MemberDevice* device;               ///< null: another process's
    int number;                         ///< of its device in the Program
    StageCopy copy{};                   ///< of its pieces of the parameters
    std::unique_ptr<MemberData> data{}; ///< null: another process's
    std::span<std::int32_t> choices{};  ///< room for choices still to come in its block; empty: they are not kept
};

} // namespace pipewright::sharding
