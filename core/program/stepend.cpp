// SPDX-License-Identifier: GPL-3.0-or-later
// The end of a step without U blocks: reductions of shared parameters' gradients, sums over replicas, and one update
// per stage and replica. O(stages x replicas + shared parameters).
#include "core/program/stepend.h"

namespace pipewright {

void StepEnd::write(const Dataflow& dataflow, bool commuted, std::vector<TaskId>& lastOnDevice)
{
    if (commuted)
        for (int r = 0; r < m_program.replicas(); ++r)
            for (const SharedParameter& shared : dataflow.shared)
                addReduction(TaskKind::Reduce, {shared.rootStage, r}, {shared.otherStage, r}, shared.bytes,
                             lastOnDevice);
    for (int r = 1; r < m_program.replicas(); ++r)
        for (int s = 0; s < m_program.stages(); ++s)
            addReduction(TaskKind::ReplicaSum, {s, 0}, {s, r}, m_costs.stages[s].gradients, lastOnDevice);
    for (int r = 0; r < m_program.replicas(); ++r)
        for (int s = 0; s < m_program.stages(); ++s) {
            const int device = deviceOf(s, r);
            TaskId& last = lastOnDevice[device];
            last = beginTask(TaskKind::Update, Op::U, s, 0, device, -1, last, none, r);
            endReads();
        }
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
