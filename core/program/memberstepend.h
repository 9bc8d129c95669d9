// SPDX-License-Identifier: GPL-3.0-or-later
// The end of a step for the members of groups (stepend.h does it for the groups). A sum of two stages' gradients
// becomes one task per member that offers its gradients, transfers, and one task per member that adds the received
// ones. A complete sum that is sent on replaces the receiver's gradients before the update. When replicas shard the
// optimizer state, each member's own parameters are divided, and the shares go to the same member of the other
// replicas' groups, which are equal (groupstages.h).
#pragma once

#include "core/program/memberwriter.h"
#include "core/schedule/replicas.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace pipewright {

/// For a sum over replicas that shard the optimizer state: the range of a member's contiguous gradient bytes that it
/// receives from the same member of the other side. Unset for other sums, which are exchanged by pieces of tensors.
std::optional<ReplicaShare> partOfSum(const PipelineShape& shape, const GroupStages& stages, const SharedSum& sum,
                                      bool toRoot, int member);

class MemberStepEnd : protected MemberWriter {
protected:
    using MemberWriter::MemberWriter;

    void addPersistent();
    void addUpdate(const Task& task);
    void addSum(const Task& task, int root);
    /// Transfers of complete gradient sums and of updated shares.
    void addTransfersBehindSums(const Task& task);
    void copyWeightsIn(const Task& task);

private:
    /// A member's gradients before anything is added to them.
    struct OfferedGradients {
        bool toRoot = false;
        int to = 0; ///< member of the other side
        BufferId buffer = none;
        TaskId maker = none, transfer = none;
    };
    /// A complete sum that is sent to a copy of a stage that takes part in no round.
    struct Complete {
        int number = 0; ///< of the sum
        std::vector<OfferedGradients> sent;
    };
    /// A member's share in transfer.
    struct Share {
        BufferId buffer = none;
        TaskId transfer = none;
    };
    int numberOf(int root, int other, bool replaces) const;
    Bytes bytesOf(const SharedSum& sum, bool toRoot, int from, int to) const;
    TaskId beginSum(TaskKind kind, int copy, int member, int part);
    void offerGradients(TaskKind kind, int number, bool toRoot, std::vector<OfferedGradients>& sent);
    void carrySums(int number, std::vector<OfferedGradients>& sent);
    void take(TaskKind kind, int number, bool toRoot, const std::vector<OfferedGradients>& sent);
    Bytes shareOf(Bytes whole, int copy, int member) const;
    void sendShares(const Task& task);

    std::map<int, Complete> m_complete;                         ///< per copy of a stage: sent to it
    std::map<int, std::vector<Share>> m_updated;                ///< per copy of a stage and member: its own share
    std::map<std::pair<int, int>, std::vector<Share>> m_shares; ///< from copy to copy, then member
};

} // namespace pipewright
