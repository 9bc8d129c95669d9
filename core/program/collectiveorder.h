// SPDX-License-Identifier: GPL-3.0-or-later
// Which sends of a group stand amid one of its blocks, before or behind a collective, because the schedule states it
// (Schedule::transferOrder).
//
// How far the data leaves the order of collectives free: all members of a group go through its blocks in one order,
// which is the device's in the schedule, and within a block the plan of the stage says which collective follows which
// (its lines can be stated). A collective takes every member's compute, and the part behind it begins when it has
// ended. So among collectives nothing is left to state. Free is where a send stands among them: it may wait until a
// collective of a later block has left the wire, and the input gradient of a B, which is whole before its weight
// gradients are, may leave before what members do for those. What a block makes otherwise is made by its last part. The
// same order holds for every member, since the pair is of the group, so that no circle can come about between them.
#pragma once

#include "core/design/groupstages.h"
#include "core/program/program.h"
#include "core/schedule/edits.h"

#include <map>
#include <utility>
#include <vector>

namespace pipewright {

class CollectiveOrder {
public:
    /// Throws Error with the pair that cannot be, and why. O(tasks log pairs).
    CollectiveOrder(const Program& groups, const GroupStages& stages, const std::vector<TransferPrecedence>& stated);

    /// Of the groups' tasks: whether this B hands its input gradient over as soon as that is whole.
    bool handsOverEarly(TaskId block) const { return m_early.contains(block); }
    /// Those of its transfers that leave then.
    const std::vector<TaskId>& leavingEarly(TaskId block) const { return m_early.at(block); }
    /// Transfers of earlier blocks that leave behind a collective of this one.
    const std::vector<TaskId>& leavingBehind(TaskId block, int collective) const;

private:
    std::map<TaskId, std::vector<TaskId>> m_early;
    std::map<std::pair<TaskId, int>, std::vector<TaskId>> m_behind;
};

/// The design's schedule with what must be stated for a collective to come before transfers that leave its group, or
/// behind them (`later`), and without what contradicts that. Compiles the result and takes its groups apart, so that
/// the diagnostics say why an order cannot be: O(tasks), and as long as groupStages() takes.
EditResult moveCollective(const Design& design, const Transfer& collective, const std::vector<Transfer>& passed,
                          bool later);

} // namespace pipewright
