// SPDX-License-Identifier: GPL-3.0-or-later
// "Complete the rest": places the unplaced blocks of a schedule in the style of the placed ones, with the schedule's
// style of backwards (B, or I and W). Placed blocks keep their order. When they are part of the schedule of the user's
// building block or of a known family, the rest follows that schedule. When they differ from a family in few places,
// the missing blocks go to their places in that family. Otherwise the schedule is simulated with the number of
// microbatches in flight that the placed blocks show (listcompletion.h).
#pragma once

#include "core/design/design.h"
#include "core/schedule/edits.h"

#include <string>

namespace pipewright {

struct Completion {
    Schedule schedule; ///< complete, or as it was when the diagnostics hold an error
    std::string style; ///< a family's title or a building block's name; empty: the depth of the placed blocks
    Diagnostics diagnostics;
};

/// If several families fit, the one with the longest match at the beginning of the lanes is used, then the user's
/// building block, then the one with the least memory. Families that search are tried for small schedules only.
/// O(families x blocks).
Completion completeSchedule(const Design& design);

} // namespace pipewright
