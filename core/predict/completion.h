// SPDX-License-Identifier: GPL-3.0-or-later
// "Complete the rest": the unplaced blocks of a schedule, placed in the style that the placed ones show, with the
// backward whole or in halves as the schedule has it. What is
// placed keeps its order. Where it is part of what a person's building block or a known family would give, the
// rest follows that; where it departs from a family in few places, the missing blocks go where that family has
// them; else the schedule is simulated with as many microbatches in flight as were seen (listcompletion.h).
#pragma once

#include "core/design/design.h"
#include "core/schedule/edits.h"

#include <string>

namespace pipewright {

struct Completion {
    Schedule schedule; ///< complete, or as it was when the diagnostics hold an error
    std::string style; ///< what was followed: a family's title, a building block's name; empty: the depth seen
    Diagnostics diagnostics;
};

/// Of several families that fit, the one that continues most of what stands at the beginning of the lanes counts,
/// then a person's own building block, then the one that needs least memory. Families that search are asked for small
/// schedules only. O(families x blocks).
Completion completeSchedule(const Design& design);

} // namespace pipewright
