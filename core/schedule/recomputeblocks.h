// SPDX-License-Identifier: GPL-3.0-or-later
// Places and removes R blocks, which make a stage's activations again. They are part of a schedule's order like all
// others; where a person did not place one, it stands right before the backward that reads what it makes, or before
// the overlapped pair of that backward.
#pragma once

#include "core/schedule/schedule.h"

#include <vector>

namespace pipewright {

/// A recompute reads the weights that its forward read. Where stages are updated amid the step their device keeps that
/// version until then; sharded states pass it on.
bool mayRecompute(const Schedule& schedule);

/// The same schedule with these stages recomputing (empty: none). R blocks that are placed already stay where they are;
/// those of stages that no longer recompute go, with their pins. O(blocks).
Schedule withRecompute(const Schedule& schedule, std::vector<Recompute> ofStage);

/// Every missing R whose backward is placed, right before it. O(blocks).
Schedule withMissingRecomputes(Schedule schedule);

} // namespace pipewright
