// SPDX-License-Identifier: GPL-3.0-or-later
// The Program of a design whose stages are held by groups, with every member as a separate device: a block is divided
// into the members' parts and the collectives between them, transfers go from member to member, and every buffer
// belongs to one member. This Program is executed. The groups' Program, whose devices are the groups, is shown and
// edited; each task here names its task in the groups' Program.
#pragma once

#include "core/design/groupstages.h"
#include "core/program/program.h"

namespace pipewright {

struct MemberProgram {
    Program program;
    std::vector<Nanoseconds> durations; ///< per task; used by predictor and emulation
    std::vector<TaskId> blockOfTask;    ///< per task: of the groups' Program
};

/// `groups` is the compiled Program of the design that has these stages. The members' parts keep the order of their
/// device's blocks; `stated` is the stated order of transfers. Throws Error for tasks that groups do not run
/// (whyNoMembers() reports them beforehand), and for impossible pairs of `stated` (collectiveorder.h).
/// O(tasks · parts · members).
MemberProgram memberProgram(const Program& groups, const GroupStages& stages, const Costs& costs,
                            const std::vector<TransferPrecedence>& stated);

/// The member of `device`'s group with the highest peak, whose memory stands for the group's: numbered over all
/// members.
inline int fullestMember(const Program& members, const GroupStages& stages, int device)
{
    const int first = stages.firstOf(device);
    int fullest = first;
    for (int member = first; member < first + stages.membersOfDevice[device]; ++member)
        if (members.devices[member].peakBytes > members.devices[fullest].peakBytes)
            fullest = member;
    return fullest;
}

} // namespace pipewright
