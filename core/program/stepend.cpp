// SPDX-License-Identifier: GPL-3.0-or-later
// The end of a step without U blocks: reductions of shared parameters' gradients, sums over replicas, and one update
// per stage and replica. O(stages x replicas x log replicas + shared parameters).
#include "core/program/stepend.h"

namespace pipewright {

void StepEnd::write(std::vector<TaskId>& lastOnDevice)
{
    if (m_commuted)
        for (int r = 0; r < m_program.replicas(); ++r)
            for (const SharedParameter& shared : m_dataflow.shared)
                addReduction(TaskKind::Reduce, {shared.rootStage, r}, {shared.otherStage, r}, shared.bytes,
                             lastOnDevice);
    while (m_next < m_sums.size())
        addSum(m_sums[m_next++], lastOnDevice);
    for (int r = 0; r < m_program.replicas(); ++r)
        for (int s = 0; s < m_program.stages(); ++s) {
            const int device = deviceOf(s, r);
            TaskId& last = lastOnDevice[device];
            last = beginTask(TaskKind::Update, Op::U, s, 0, device, -1, last, none, r);
            endReads();
        }
}

void StepEnd::addSum(const PlannedReplicaSum& sum, std::vector<TaskId>& lastOnDevice)
{
    addReduction(TaskKind::ReplicaSum, {sum.stage, sum.pair.root}, {sum.stage, sum.pair.other},
                 m_costs.stages[sum.stage].gradients, lastOnDevice);
}

void StepEnd::addReduction(TaskKind kind, Owner root, Owner other, Bytes bytes, std::vector<TaskId>& lastOnDevice)
{
    const int here = deviceOf(root.stage, root.replica), there = deviceOf(other.stage, other.replica);
    TaskId& last = lastOnDevice[here];
    const TaskId task = beginTask(kind, Op::U, root.stage, other.stage, here, there, last, none, other.replica);
    endReads();
    if (there != here) {
        waitFor(task, lastOnDevice[there]);
        operand(addBuffer(BufferKind::ReduceInbox, here, other.stage, -1, bytes));
        operand(addBuffer(BufferKind::ReduceInbox, there, root.stage, -1, bytes));
    }
    last = lastOnDevice[there] = task;
}

} // namespace pipewright
