// SPDX-License-Identifier: GPL-3.0-or-later
// Places the unplaced blocks of a schedule by simulating it: every device runs its placed blocks in their order
// and takes unplaced ones where it would be idle, never more forwards ahead of their backwards than the placed
// part shows. Knows no family; completion.h asks those first. It fails only where the placed blocks wait for
// each other through blocks that are missing.
#pragma once

#include "core/design/design.h"
#include "core/schedule/edits.h"

namespace pipewright {

/// Per device, the forwards in flight at one time (chunks, when it holds several stages) that the placed blocks
/// show: the most of them whose backward is still to come. Where no backward is placed: at least those of 1F1B.
std::vector<int> depthShown(const Schedule& schedule);

/// The completed schedule; an error when there is none, and then the schedule as it was. What comes before a placed
/// block of the same operation and stage by its number stands before it. O(blocks x (devices + stages of a device)).
EditResult completeByList(const Design& design);

} // namespace pipewright
