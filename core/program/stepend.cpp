// SPDX-License-Identifier: GPL-3.0-or-later
// The end of a step without U blocks: reductions of shared parameters' gradients, sums over replicas, and one update
// per stage and replica. O(stages x replicas x log replicas + shared parameters), and with shares of the optimizer's
// state O(stages x replicas^2).
#include "core/program/stepend.h"

#include <cmath>

namespace pipewright {

void StepEnd::write(std::vector<TaskId>& lastOnDevice, CopyCollectives* collectives)
{
    m_collectives = collectives;
    if (m_commuted)
        for (int r = 0; r < m_program.replicas(); ++r)
            for (const SharedParameter& shared : m_dataflow.shared)
                if (shared.joinsStages())
                    addReduction(TaskKind::Reduce, {shared.rootStage, r}, {shared.otherStage, r}, summedOf(shared),
                                 lastOnDevice);
    while (m_next < m_sums.size())
        addSum(m_sums[m_next++], lastOnDevice);
    if (m_program.blocks())
        for (int s = 0; s < m_program.stages(); ++s)
            for (const ReplicaCopy& copy : replicaCopies(m_program.replicas()))
                copySum({s, copy.from}, {s, copy.to}, lastOnDevice);
    for (int r = 0; r < m_program.replicas(); ++r)
        for (int s = 0; s < m_program.stages(); ++s)
            if (stateOf({s, r}).updated == none)
                update({s, r}, lastOnDevice);
    if (m_program.sharesOptimizer())
        putSharesInPlace(lastOnDevice);
}

/// Of a shared parameter each of the two devices has what copies of the pipeline left it.
ExchangedGradients StepEnd::summedOf(const SharedParameter& shared) const
{
    const StageCosts& stage = m_costs.stages[static_cast<std::size_t>(shared.rootStage)];
    const Bytes whole = stage.allGradients();
    const Bytes bytes = whole == stage.gradients
                            ? shared.bytes
                            : std::llround(static_cast<double>(shared.bytes) * static_cast<double>(stage.gradients)
                                           / static_cast<double>(whole));
    return {bytes, bytes};
}

void StepEnd::addSum(const PlannedReplicaSum& sum, std::vector<TaskId>& lastOnDevice)
{
    addReduction(TaskKind::ReplicaSum, {sum.stage, sum.pair.root}, {sum.stage, sum.pair.other},
                 exchangedGradients(m_program, m_costs.stages[sum.stage].gradients, sum.pair), lastOnDevice);
    for (const int replica : {sum.pair.root, sum.pair.other}) {
        State& state = stateOf({sum.stage, replica});
        state.lastSum = static_cast<TaskId>(m_program.tasks.size() - 1);
        --state.sumsLeft;
        if (m_shares && state.sumsLeft == 0 && !isSentTheSum(replica)) // of which it keeps its share
            keepShare({sum.stage, replica}, summedIn({sum.stage, replica}));
    }
    if (m_program.blocks())
        return;
    for (const int replica : {sum.pair.root, sum.pair.other}) {
        const Owner owner{sum.stage, replica};
        if (stateOf(owner).sumsLeft > 0 || isSentTheSum(replica))
            continue;
        for (const ReplicaCopy& copy : replicaCopies(m_program.replicas()))
            if (copy.from == replica)
                copySum(owner, {sum.stage, copy.to}, lastOnDevice);
        if (updatesAmidTheBlocks(m_program, m_costs))
            update(owner, lastOnDevice);
    }
}

TaskId StepEnd::beginTransfer(Owner from, Owner to, TaskId producer, std::vector<TaskId>& lastOnDevice)
{
    const int here = deviceOf(from.stage, from.replica), there = deviceOf(to.stage, to.replica);
    const TaskId task = beginTask(TaskKind::Transfer, Op::U, from.stage, 0, here, there, none, producer, from.replica);
    if (m_program.blocks())
        holdUp(task, here, there, lastOnDevice);
    return task;
}

/// Overwrites the receiver's gradients, which are already part of the sum; movedBytes() gives the bytes.
void StepEnd::copySum(Owner from, Owner to, std::vector<TaskId>& lastOnDevice)
{
    const TaskId task = beginTransfer(from, to, stateOf(from).lastSum, lastOnDevice);
    operand(summedIn(from));
    endReads();
    if (m_shares)
        keepShare(to, summedIn(from));
    else
        operand(persistentBuffer(m_program, BufferKind::Gradients, to.stage, to.replica));
    stateOf(to).copied = task;
}

void StepEnd::keepShare(Owner owner, BufferId summed)
{
    const Bytes all = summed == none ? 0 : m_program.buffers.bytes(summed); // none: its backwards are not placed
    const Bytes share = updatingGradients(m_program, all, owner.replica).count();
    operand(stateOf(owner).kept = addBuffer(BufferKind::KeptGradients, deviceOf(owner.stage, owner.replica),
                                            owner.stage, -1, share, -1, false, owner.replica));
}

void StepEnd::update(Owner owner, std::vector<TaskId>& lastOnDevice)
{
    State& state = stateOf(owner);
    const int device = deviceOf(owner.stage, owner.replica);
    TaskId& last = lastOnDevice[device];
    last = beginTask(TaskKind::Update, Op::U, owner.stage, 0, device, -1, last, state.copied, owner.replica);
    state.updated = last;
    if (m_collectives)
        waitFor(last, m_collectives->sumOf(owner.stage));
    operand(state.kept);
    if (state.copied != none && !m_shares)
        operand(persistentBuffer(m_program, BufferKind::Gradients, owner.stage, owner.replica));
    endReads();
    if (m_collectives)
        m_collectives->addGatherAfter(owner.stage, state.updated, last);
    if (m_program.sharesOptimizer() && !m_program.sharesParametersOfReplicas()) // gathered when they are read
        sendShare(owner, lastOnDevice);
}

/// Sends the share of the update that was just begun.
void StepEnd::sendShare(Owner owner, std::vector<TaskId>& lastOnDevice)
{
    const StageCosts& costs = m_costs.stages[owner.stage];
    const Bytes bytes = shareOfBytes(costs.parameters, costs, owner.replica, m_program.replicas());
    if (bytes == 0)
        return;
    const BufferId share = addBuffer(BufferKind::SentWeights, deviceOf(owner.stage, owner.replica), owner.stage, 1,
                                     bytes, -1, false, owner.replica);
    operand(share);
    const TaskId updated = stateOf(owner).updated;
    for (int step = 1; step < m_program.replicas(); ++step) { // from the next on, so that none gets all at once
        const Owner taker{owner.stage, (owner.replica + step) % m_program.replicas()};
        const TaskId task = beginTransfer(owner, taker, updated, lastOnDevice);
        operand(share);
        endReads();
        const BufferId received = addBuffer(BufferKind::ReceivedWeights, deviceOf(taker.stage, taker.replica),
                                            owner.stage, 1, bytes, -1, false, owner.replica);
        operand(received);
        m_arriving.push_back({owner, taker, task, received});
    }
}

void StepEnd::putSharesInPlace(std::vector<TaskId>& lastOnDevice)
{
    for (const Arriving& share : m_arriving) {
        const int device = deviceOf(share.taker.stage, share.taker.replica);
        TaskId& last = lastOnDevice[device];
        last = beginTask(TaskKind::CopyWeightsIn, Op::U, share.owner.stage, 0, device,
                         deviceOf(share.owner.stage, share.owner.replica), last, share.transfer, share.taker.replica);
        operand(share.buffer);
        endReads();
    }
}

void StepEnd::addReduction(TaskKind kind, Owner root, Owner other, ExchangedGradients bytes,
                           std::vector<TaskId>& lastOnDevice)
{
    const int here = deviceOf(root.stage, root.replica), there = deviceOf(other.stage, other.replica);
    TaskId& last = lastOnDevice[here];
    const TaskId task = beginTask(kind, Op::U, root.stage, other.stage, here, there, last, none, other.replica);
    for (const Owner& owner : {root, other})
        operand(m_shares ? summedIn(owner) : none);
    endReads();
    if (m_collectives) // it sums what copies have summed
        for (const int stage : {root.stage, other.stage})
            waitFor(task, m_collectives->sumOf(stage));
    if (there != here) {
        waitFor(task, lastOnDevice[there]);
        operand(addBuffer(BufferKind::ReduceInbox, here, other.stage, -1, bytes.toRoot));
        operand(addBuffer(BufferKind::ReduceInbox, there, root.stage, -1, bytes.toOther));
    }
    last = lastOnDevice[there] = task;
}

} // namespace pipewright
