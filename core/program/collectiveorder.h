// SPDX-License-Identifier: GPL-3.0-or-later
// Finds the sends of a group that are issued inside one of its blocks, before or after a collective, because the
// schedule states that order (Schedule::transferOrder).
//
// The order among collectives is fixed: all members of a group run its blocks in one order, the device's order in the
// schedule, and the stage's plan gives the order of the collectives in a block (its lines can be stated). A collective
// occupies the compute of every member, and the next part begins when it has ended. The place of a send among the
// collectives is free. A send may wait until a collective of a later block has ended. The input gradient of a B is
// complete before its weight gradients are, so it may be sent before the members work on those. Any other result of a
// block is complete only after its last part. A stated pair applies to the whole group, so every member has the same
// order and no cycle between members can arise.
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
    /// Throws Error with the impossible pair and the reason. O(tasks log pairs).
    CollectiveOrder(const Program& groups, const GroupStages& stages, const std::vector<TransferPrecedence>& stated);

    /// `block`: a task of the groups' Program. True for a B that sends its input gradient as soon as that is complete.
    bool handsOverEarly(TaskId block) const { return m_early.contains(block); }
    /// The transfers that are sent then.
    const std::vector<TaskId>& leavingEarly(TaskId block) const { return m_early.at(block); }
    /// Transfers of earlier blocks that are sent after this collective of the block.
    const std::vector<TaskId>& leavingBehind(TaskId block, int collective) const;

private:
    std::map<TaskId, std::vector<TaskId>> m_early;
    std::map<std::pair<TaskId, int>, std::vector<TaskId>> m_behind;
};

/// The design's schedule with the pairs that put a collective before transfers of its group, or after them (`later`),
/// and without pairs that contradict this. Compiles the result down to the members, so that the diagnostics explain an
/// impossible order: O(tasks), plus the time of groupStages().
EditResult moveCollective(const Design& design, const Transfer& collective, const std::vector<Transfer>& passed,
                          bool later);

} // namespace pipewright
