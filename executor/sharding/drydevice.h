// SPDX-License-Identifier: GPL-3.0-or-later
// How much memory a member's blocks take: the blocks are done on a device that computes nothing and has no memory, so
// that what is counted is what the real ones ask for.
#pragma once

#include "core/design/groupstages.h"

namespace pipewright::sharding {

/// Replaces the bytes of every member of every stage by those that training needs; a parameter has `stateValues` values
/// of optimizer state, and stages recompute as the schedule says. `apart`: the members are processes, which have copies
/// of what the others send them. Throws Error where a stage's graph has an operation without maths.
void measureMembers(GroupStages& stages, int stateValues, const std::vector<Recompute>& recompute = {},
                    bool apart = false);

} // namespace pipewright::sharding
