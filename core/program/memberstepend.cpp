// SPDX-License-Identifier: GPL-3.0-or-later
// O(sums · pieces) and, where state is shared out, O(stages · replicas² · members).
#include "core/program/memberstepend.h"

#include "core/program/replicasums.h"

#include <algorithm>

namespace pipewright {

std::optional<ReplicaShare> partOfSum(const PipelineShape& shape, const GroupStages& stages, const SharedSum& sum,
                                      bool toRoot, int member)
{
    if (!shape.sharesOptimizer() || sum.root % stages.perReplica != sum.other % stages.perReplica)
        return std::nullopt;
    const Bytes gradients =
        stages.stages[static_cast<std::size_t>(sum.root)].members[static_cast<std::size_t>(member)].gradients;
    const ReplicaPair pair{sum.root / stages.perReplica, sum.other / stages.perReplica, 0};
    if (sum.replaces)
        return toRoot ? ReplicaShare{} : updatingGradients(shape, gradients, pair.other);
    return summedGradients(shape, gradients, pair, toRoot ? pair.root : pair.other);
}

Bytes MemberStepEnd::shareOf(Bytes whole, int copy, int member) const
{
    const StageCosts& bytes = stageAt(copy).members[static_cast<std::size_t>(member)];
    return m_groups.sharesOptimizer() ? shareOfBytes(whole, bytes, copy / m_stages.perReplica, m_groups.replicas())
                                      : whole;
}

void MemberStepEnd::addPersistent()
{
    for (int copy = 0; copy < static_cast<int>(m_stages.stages.size()); ++copy)
        for (int m = 0; m < m_stages.membersOf(copy); ++m) {
            const StageCosts& bytes = stageAt(copy).members[static_cast<std::size_t>(m)];
            addBuffer(BufferKind::Parameters, deviceOf(copy, m), copy, -1, bytes.parameters);
            addBuffer(BufferKind::Gradients, deviceOf(copy, m), copy, -1, bytes.gradients);
            addBuffer(BufferKind::OptimizerState, deviceOf(copy, m), copy, -1, shareOf(bytes.optimizerState, copy, m));
        }
}

void MemberStepEnd::addUpdate(const Task& task)
{
    const int copy = copyOf(task);
    if (const auto complete = m_complete.find(copy); complete != m_complete.end())
        take(TaskKind::ReplicaSum, complete->second.number, false, complete->second.sent);
    const int replicas = m_groups.sharesOptimizer() ? m_groups.replicas() : 1;
    for (int m = 0; m < m_stages.membersOf(copy); ++m) {
        const int device = deviceOf(copy, m);
        const Nanoseconds whole = stageAt(copy).passes[indexOf(Op::U)].parts.front()[static_cast<std::size_t>(m)];
        const TaskId id =
            begin(TaskKind::Update, Op::U, copy, task.microbatch(), device, -1, (whole + replicas - 1) / replicas, 0);
        m_made.program.afterOnDevice[id] = std::exchange(m_last[static_cast<std::size_t>(device)], id);
        endReads();
        writeVersions(copy, m);
        if (!m_groups.sharesOptimizer())
            continue;
        const Bytes bytes = shareOf(stageAt(copy).members[static_cast<std::size_t>(m)].parameters, copy, m);
        m_updated[copy].push_back({write(BufferKind::SentWeights, device, copy, 1, bytes), id});
    }
}

int MemberStepEnd::numberOf(int root, int other, bool replaces) const
{
    const auto found = std::find_if(m_stages.sums.begin(), m_stages.sums.end(), [&](const SharedSum& sum) {
        return sum.root == root && sum.other == other && sum.replaces == replaces;
    });
    return static_cast<int>(found - m_stages.sums.begin());
}

void MemberStepEnd::addSum(const Task& task, int root)
{
    const int number = numberOf(root, m_stages.copyOf(task.otherStage(), task.replica), false);
    std::vector<OfferedGradients> sent;
    for (const bool toRoot : {false, true})
        offerGradients(task.kind, number, toRoot, sent);
    carrySums(number, sent);
    for (const bool toRoot : {true, false})
        take(task.kind, number, toRoot, sent);
}

/// `part`: twice the number of the sum, plus one for the task that adds or takes the received gradients.
TaskId MemberStepEnd::beginSum(TaskKind kind, int copy, int member, int part)
{
    const int device = deviceOf(copy, member);
    const TaskId id = begin(kind, Op::U, copy, copy % m_stages.perReplica, device, device, 0, part);
    m_made.program.afterOnDevice[id] = std::exchange(m_last[static_cast<std::size_t>(device)], id);
    return id;
}

Bytes MemberStepEnd::bytesOf(const SharedSum& sum, bool toRoot, int from, int to) const
{
    const std::optional<ReplicaShare> part = partOfSum(m_groups, m_stages, sum, toRoot, to);
    return !part ? sum.bytes(toRoot, from, to) : from == to ? part->count() : 0;
}

/// The members of one side offer their gradients to the other side.
void MemberStepEnd::offerGradients(TaskKind kind, int number, bool toRoot, std::vector<OfferedGradients>& sent)
{
    const SharedSum& sum = m_stages.sums[static_cast<std::size_t>(number)];
    const int copy = toRoot ? sum.other : sum.root, peer = toRoot ? sum.root : sum.other;
    for (int m = 0; m < m_stages.membersOf(copy); ++m) {
        const TaskId id = beginSum(kind, copy, m, 2 * number);
        endReads();
        for (int to = 0; to < m_stages.membersOf(peer); ++to)
            if (const Bytes bytes = bytesOf(sum, toRoot, m, to); bytes > 0)
                sent.push_back(
                    {toRoot, to, write(BufferKind::PartialGradient, deviceOf(copy, m), copy, -1, bytes), id, none});
    }
}

void MemberStepEnd::carrySums(int number, std::vector<OfferedGradients>& sent)
{
    const SharedSum& sum = m_stages.sums[static_cast<std::size_t>(number)];
    for (OfferedGradients& one : sent) {
        const int copy = one.toRoot ? sum.other : sum.root, peer = one.toRoot ? sum.root : sum.other;
        const Buffer made = m_made.program.buffers[one.buffer];
        if (made.device == deviceOf(peer, one.to))
            continue;
        one.transfer = send(Op::U, copy, peer, 0, one.buffer, one.maker, deviceOf(peer, one.to));
        one.buffer = write(BufferKind::ReceivedPartialGradient, deviceOf(peer, one.to), copy, -1, made.bytes);
    }
}

void MemberStepEnd::take(TaskKind kind, int number, bool toRoot, const std::vector<OfferedGradients>& sent)
{
    const SharedSum& sum = m_stages.sums[static_cast<std::size_t>(number)];
    const int copy = toRoot ? sum.root : sum.other;
    for (int m = 0; m < m_stages.membersOf(copy); ++m) {
        const TaskId id = beginSum(kind, copy, m, 2 * number + 1);
        for (const OfferedGradients& one : sent)
            if (one.toRoot == toRoot && one.to == m) {
                operand(one.buffer);
                waitFor(id, one.transfer);
            }
        endReads();
    }
}

void MemberStepEnd::addTransfersBehindSums(const Task& task)
{
    if (m_groups.buffers[m_groups.reads(m_block).front()].kind == BufferKind::SentWeights) {
        sendShares(task);
        return;
    }
    const BufferId there = m_groups.writes(m_block).front();
    const int root = copyOf(task), other = m_stages.copyOf(task.stage, m_groups.buffers[there].replica);
    Complete& complete = m_complete[other];
    complete.number = numberOf(root, other, true);
    offerGradients(TaskKind::ReplicaSum, complete.number, false, complete.sent);
    carrySums(complete.number, complete.sent);
}

void MemberStepEnd::sendShares(const Task& task)
{
    const int owner = copyOf(task);
    int taker = owner;
    for (int replica = 0; replica < m_groups.replicas(); ++replica)
        if (m_groups.placement(replica)[static_cast<std::size_t>(task.stage)] == task.destination())
            taker = m_stages.copyOf(task.stage, replica);
    std::vector<Share>& arriving = m_shares[{owner, taker}];
    for (int m = 0; m < m_stages.membersOf(owner); ++m) {
        Share share = m_updated.at(owner)[static_cast<std::size_t>(m)];
        if (share.buffer != none) {
            const Bytes bytes = m_made.program.buffers[share.buffer].bytes;
            share.transfer = send(Op::U, owner, taker, 0, share.buffer, share.transfer, deviceOf(taker, m));
            share.buffer = write(BufferKind::ReceivedWeights, deviceOf(taker, m), owner, 1, bytes);
        }
        arriving.push_back(share);
    }
}

void MemberStepEnd::copyWeightsIn(const Task& task)
{
    const int taker = copyOf(task);
    const int owner = m_stages.copyOf(task.stage, m_groups.buffers[m_groups.reads(m_block).front()].replica);
    for (int m = 0; m < m_stages.membersOf(taker); ++m) {
        const Share& share = m_shares.at({owner, taker})[static_cast<std::size_t>(m)];
        const int device = deviceOf(taker, m);
        const TaskId id = begin(TaskKind::CopyWeightsIn, Op::U, taker, 0, device, deviceOf(owner, m), 0, 0);
        m_made.program.afterOnDevice[id] = std::exchange(m_last[static_cast<std::size_t>(device)], id);
        if (share.buffer != none) {
            waitFor(id, share.transfer);
            operand(share.buffer);
        }
        endReads();
    }
}

} // namespace pipewright
