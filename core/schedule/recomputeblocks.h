// SPDX-License-Identifier: GPL-3.0-or-later
// Places and removes R blocks, which recompute a stage's activations. They are part of a schedule's order like all
// other blocks. An R that the user did not place goes directly before the backward that reads its result, or before
// that backward's overlapped pair.
#pragma once

#include "core/schedule/schedule.h"

#include <vector>

namespace pipewright {

/// A recompute reads the weight version of its forward. Its device keeps that version until then, except with sharded
/// states, which pass it on.
bool mayRecompute(const Schedule& schedule);

/// The same schedule with these stages recomputing (empty: none). R blocks that are already placed stay; those of
/// stages that no longer recompute by blocks are removed with their pins. O(blocks).
Schedule withRecompute(const Schedule& schedule, std::vector<Recompute> ofStage);

/// Adds every missing R whose backward is placed, directly before it. O(blocks).
Schedule withMissingRecomputes(Schedule schedule);

} // namespace pipewright
