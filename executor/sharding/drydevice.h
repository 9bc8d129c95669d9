// SPDX-License-Identifier: GPL-3.0-or-later
// Finds out how much memory a member's blocks need: it runs them on a device that computes nothing and has no memory,
// and counts what the real blocks would allocate.
#pragma once

#include "core/design/groupstages.h"
#include "executor/runtime/backend.h"

namespace pipewright::sharding {

/// Where the members of a run are. This decides how much memory their collectives need.
struct MemberPlaces {
    bool apart = false;         ///< each in its own process, with copies of what the others send …
    bool communicators = false; ///< … or each on a GPU of its own process, connected by communicators
    Backend* backend = nullptr; ///< its devices, in order; null: threads that read each other's memory
};

/// Replaces the bytes of every member of every stage by those that training needs; a parameter has `stateValues` values
/// of optimizer state, and stages recompute as the schedule says. Throws Error where a stage's graph has an operation
/// without maths.
void measureMembers(GroupStages& stages, int stateValues, const std::vector<Recompute>& recompute = {},
                    const MemberPlaces& places = {});

/// Sets each stage's costs, those of the group's lane, to the bytes of the member that needs most in total, over all
/// replicas.
void takeFullestMembers(const GroupStages& stages, Costs& costs);

} // namespace pipewright::sharding
