// SPDX-License-Identifier: GPL-3.0-or-later
// How much memory a member's blocks take: the blocks are done on a device that computes nothing and has no memory, so
// that what is counted is what the real ones ask for.
#pragma once

#include "core/design/groupstages.h"
#include "executor/runtime/backend.h"

namespace pipewright::sharding {

/// Where the members of a run are, which decides what memory their collectives take.
struct MemberPlaces {
    bool apart = false;         ///< in processes of their own, which have copies of what the others send them …
    bool communicators = false; ///< … or on GPUs of such, which communicators connect
    Backend* backend = nullptr; ///< its devices, in their order; null: threads that read each other's memory
};

/// Replaces the bytes of every member of every stage by those that training needs; a parameter has `stateValues` values
/// of optimizer state, and stages recompute as the schedule says. Throws Error where a stage's graph has an operation
/// without maths.
void measureMembers(GroupStages& stages, int stateValues, const std::vector<Recompute>& recompute = {},
                    const MemberPlaces& places = {});

/// Of every stage the bytes of the member that needs most in all, of whatever copy: those of the group's lane.
void takeFullestMembers(const GroupStages& stages, Costs& costs);

} // namespace pipewright::sharding
