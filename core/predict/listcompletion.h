// SPDX-License-Identifier: GPL-3.0-or-later
// Places the unplaced blocks of a schedule by simulation: every device runs its placed blocks in their order and takes
// unplaced ones when it would be idle, with no more forwards in flight than the placed part shows. It uses no family;
// completion.h tries those first. It fails only when the placed blocks wait for each other through missing blocks.
#pragma once

#include "core/design/design.h"
#include "core/schedule/edits.h"

namespace pipewright {

/// Per device, the forwards in flight at one time (chunks, when it holds several stages) that the placed blocks
/// show: the most of them whose backward is still to come. Where no backward is placed: at least those of 1F1B.
std::vector<int> depthShown(const Schedule& schedule);

/// The completed schedule, or an error and the unchanged schedule. A missing block with a lower number than a placed
/// block of the same operation and stage goes before it. O(blocks x (devices + stages of a device)).
EditResult completeByList(const Design& design);

} // namespace pipewright
