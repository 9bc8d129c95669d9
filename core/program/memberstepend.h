// SPDX-License-Identifier: GPL-3.0-or-later
// The end of a step as the members of groups do it (stepend.h has it for the groups). A sum of two stages' gradients
// becomes what every member sets out, transfers, and what every member adds; a sum that is sent on takes the place of
// what its receiver has, before the update. A share of the optimizer's state is shared out within each member's own
// parameters, and goes to the same member of the other replicas' groups, which are alike (groupstages.h).
#pragma once

#include "core/program/memberwriter.h"
#include "core/schedule/replicas.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace pipewright {

/// Of a sum over replicas that share the optimizer's state out: which bytes of a member's gradients, as they lie, it is
/// sent by the same member of the other side. Unset for other sums, which go by pieces of tensors.
std::optional<ReplicaShare> partOfSum(const PipelineShape& shape, const GroupStages& stages, const SharedSum& sum,
                                      bool toRoot, int member);

class MemberStepEnd : protected MemberWriter {
protected:
    using MemberWriter::MemberWriter;

    void addPersistent();
    void addUpdate(const Task& task);
    void addSum(const Task& task, int root);
    /// Of sums of gradients that are complete, and of shares that were updated.
    void addTransfersBehindSums(const Task& task);
    void putInPlace(const Task& task);

private:
    /// A member's sum of gradients, as it is before anything is added.
    struct SetOut {
        bool toRoot = false;
        int to = 0; ///< member of the other side
        BufferId buffer = none;
        TaskId maker = none, transfer = none;
    };
    /// A sum on its way to a copy of a stage that takes part in no round.
    struct Complete {
        int number = 0; ///< of the sum
        std::vector<SetOut> sent;
    };
    /// A member's share on its way.
    struct Share {
        BufferId buffer = none;
        TaskId transfer = none;
    };
    int numberOf(int root, int other, bool replaces) const;
    Bytes bytesOf(const SharedSum& sum, bool toRoot, int from, int to) const;
    TaskId beginSum(TaskKind kind, int copy, int member, int part);
    void setOut(TaskKind kind, int number, bool toRoot, std::vector<SetOut>& sent);
    void carrySums(int number, std::vector<SetOut>& sent);
    void take(TaskKind kind, int number, bool toRoot, const std::vector<SetOut>& sent);
    Bytes shareOf(Bytes whole, int copy, int member) const;
    void sendShares(const Task& task);

    std::map<int, Complete> m_complete;                         ///< per copy of a stage: on its way there
    std::map<int, std::vector<Share>> m_updated;                ///< per copy of a stage and member: its own share
    std::map<std::pair<int, int>, std::vector<Share>> m_shares; ///< from copy to copy, then member
};

} // namespace pipewright
