// SPDX-License-Identifier: GPL-3.0-or-later
// The tasks after a stage's blocks in a schedule without U blocks: gradients of shared parameters and of replicas are
// summed, and each stage is updated. Sums over replicas are placed among the blocks of other stages, as planned by
// replicasums.h. When replicas shard the optimizer state, the updates of their shares and the transfers of the shares
// to the other replicas are placed there too. The receivers put the shares in place after all blocks, when no block
// reads the old weights any more.
#pragma once

#include "core/design/dataflow.h"
#include "core/program/copycollectives.h"
#include "core/program/replicashares.h"
#include "core/program/replicasums.h"
#include "core/program/taskwriter.h"

#include <vector>

namespace pipewright {

class StepEnd : TaskWriter {
public:
    /// Keeps references to all. `shares`: of replicas, where they share out gradients, otherwise null. `commuted`:
    /// shared parameters' gradients are summed once, at the end of the step, and not for each microbatch. `sums` as
    /// planReplicaSums() makes them.
    StepEnd(Program& program, const Schedule& schedule, const Costs& costs, const Dataflow& dataflow,
            const ReplicaShares* shares, bool commuted, std::vector<PlannedReplicaSum> sums)
        : TaskWriter(program, schedule, costs), m_dataflow(dataflow), m_shares(shares), m_commuted(commuted),
          m_sums(std::move(sums)),
          m_states(static_cast<std::size_t>(program.replicas()) * static_cast<std::size_t>(program.stages()))
    {
        for (const PlannedReplicaSum& sum : m_sums)
            for (const int replica : {sum.pair.root, sum.pair.other})
                ++stateOf({sum.stage, replica}).sumsLeft;
    }

    /// Adds the sums that begin before this time. `lastOnDevice`: each device's last task, which is updated.
    void addSumsBefore(Nanoseconds time, std::vector<TaskId>& lastOnDevice)
    {
        while (m_next < m_sums.size() && m_sums[m_next].at < time)
            addSum(m_sums[m_next++], lastOnDevice);
    }
    /// Adds the remaining sums and the updates; `collectives`: with copies that are only counted, where the step has
    /// some.
    void write(std::vector<TaskId>& lastOnDevice, CopyCollectives* collectives = nullptr);

private:
    /// One owner of a sum: a stage of a replica.
    struct Owner {
        int stage = 0, replica = 0;
    };
    void addSum(const PlannedReplicaSum& sum, std::vector<TaskId>& lastOnDevice);
    ExchangedGradients summedOf(const SharedParameter& shared) const;
    /// Where the gradients of a replica's blocks are added up.
    BufferId summedIn(Owner owner) const
    {
        return m_shares ? m_shares->gradientsOf(owner.stage, owner.replica)
                        : persistentBuffer(m_program, BufferKind::Gradients, owner.stage, owner.replica);
    }
    /// Among the writes of the present task: the share of a sum that its owner keeps, of `summed`.
    void keepShare(Owner owner, BufferId summed);
    /// Whether a replica has the complete sum only when another one sends it.
    bool isSentTheSum(int replica) const
    {
        return replica >= m_program.replicas() - static_cast<int>(replicaCopies(m_program.replicas()).size());
    }
    void copySum(Owner from, Owner to, std::vector<TaskId>& lastOnDevice);
    void update(Owner owner, std::vector<TaskId>& lastOnDevice);
    void sendShare(Owner owner, std::vector<TaskId>& lastOnDevice);
    void putSharesInPlace(std::vector<TaskId>& lastOnDevice);
    TaskId beginTransfer(Owner from, Owner to, TaskId producer, std::vector<TaskId>& lastOnDevice);
    void addReduction(TaskKind kind, Owner root, Owner other, ExchangedGradients bytes,
                      std::vector<TaskId>& lastOnDevice);

    /// The progress of a stage of a replica.
    struct State {
        int sumsLeft = 0;
        TaskId lastSum = none;
        TaskId copied = none; ///< the transfer that brought it the whole sum
        TaskId updated = none;
        BufferId kept = none; ///< its share of the sum, where gradients are shared out
    };
    State& stateOf(Owner owner)
    {
        return m_states[static_cast<std::size_t>(owner.replica) * static_cast<std::size_t>(m_program.stages())
                        + static_cast<std::size_t>(owner.stage)];
    }
    /// A share in transfer.
    struct Arriving {
        Owner owner, taker;
        TaskId transfer = none;
        BufferId buffer = none;
    };

    const Dataflow& m_dataflow;
    const ReplicaShares* m_shares;
    bool m_commuted;
    std::vector<PlannedReplicaSum> m_sums;
    std::size_t m_next = 0;
    std::vector<State> m_states; ///< per replica and stage
    std::vector<Arriving> m_arriving;
    CopyCollectives* m_collectives = nullptr;
};

} // namespace pipewright
