// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the groups' tasks in their order. A block becomes, part by part, a task on every member and then the
// collective; the first part reads the received buffers and defines the block's saved buffers, the last one defines its
// results. The end of the step is in memberstepend.h. Liveness is the compiler's own (liveness.h), on the members'
// tasks.
#include "core/program/memberprogram.h"

#include "core/program/collectiveorder.h"
#include "core/program/liveness.h"
#include "core/program/memberstepend.h"
#include "core/program/replicasums.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace pipewright {

namespace {

/// Buffers of one stage and microbatch on one member: those of F, those of R when the stage recomputes, and the
/// reloaded ones after an offload.
struct MemberCell {
    BufferId savedUntilInputGrad = none, savedUntilWeightGrad = none, savedFromInputGrad = none;
    std::array<BufferId, 2> onHost{none, none};
    TaskId offload = none, reload = none;
};

/// A piece of a stage's output, or of its gradient, where its consumer reads it.
struct Arrived {
    int to = 0; ///< member of the consumer's group
    BufferId buffer = none;
    TaskId transfer = none; ///< none: it was made there
};

class MemberCompilation : MemberStepEnd {
public:
    MemberCompilation(const Program& groups, const GroupStages& stages, const Costs& costs,
                      const std::vector<TransferPrecedence>& stated)
        : MemberStepEnd(groups, stages, costs), m_order(groups, stages, stated)
    {
        const auto microbatches = static_cast<std::size_t>(groups.microbatches);
        m_cells.resize(stages.stages.size() * microbatches);
        m_outputs.resize(stages.edges.size() * microbatches);
        m_gradients.resize(stages.edges.size() * microbatches);
        for (int copy = 0; copy < static_cast<int>(stages.stages.size()); ++copy)
            m_edges.emplace_back(stages, copy);
        m_lastCopy.resize(m_last.size(), {none, none});
        if (!groups.offload.empty())
            for (const Program::ExtraDependency& one : groups.extraDependencies)
                if (one.after != none && groups.tasks[one.after].kind == TaskKind::Offload) // none: a pin
                    m_offloadsBefore.emplace(one.task, one.after);
        for (const Program::ExtraDependency& one : groups.extraDependencies)
            if (one.after == none)
                m_pins.emplace(one.task, one.earliestStart);
            else if (groups.tasks[one.task].kind == TaskKind::Transfer)
                m_behindBlocks.insert(one.task);
        // A block's early result exists before its device reaches the sends that follow the block.
        for (TaskId t = 0; t < groups.tasks.size(); ++t)
            if (const TaskId maker = groups.afterData[t];
                m_order.handsOverEarly(t)
                || (maker != none && groups.tasks[t].kind == TaskKind::Transfer && m_order.handsOverEarly(maker)))
                m_behindBlocks.insert(t);
    }

    MemberProgram run()
    {
        Program& program = m_made.program;
        program.shape() = m_groups;
        program.communication = m_groups.communication;
        addPersistent();
        for (m_block = 0; m_block < m_groups.tasks.size(); ++m_block)
            if (!m_left.contains(m_block))
                add(m_groups.tasks[m_block]);
        program.operandBegin.push_back(static_cast<std::uint32_t>(program.operands.size()));
        projectOntoDevices(program, m_stages.members(), outstandingSends, 1);
        return std::move(m_made);
    }

private:
    static constexpr int outstandingSends = 2;

    const CopyEdges& edgesOf(int copy) const { return m_edges[static_cast<std::size_t>(copy)]; }
    std::size_t cellOf(std::size_t index, int microbatch) const
    {
        return index * static_cast<std::size_t>(m_groups.microbatches) + static_cast<std::size_t>(microbatch);
    }
    std::vector<Arrived>& arrivedOf(const StageEdge& edge, int microbatch, bool forward)
    {
        const auto index = static_cast<std::size_t>(&edge - m_stages.edges.data());
        return (forward ? m_outputs : m_gradients)[cellOf(index, microbatch)];
    }

    void add(const Task& task)
    {
        switch (task.kind) {
        case TaskKind::Compute: addBlock(task); return;
        case TaskKind::Update: addUpdate(task); return;
        case TaskKind::Transfer: task.op == Op::U ? addTransfersBehindSums(task) : addTransfers(task); return;
        case TaskKind::Reduce:
        case TaskKind::ReplicaSum: addSum(task, m_stages.copyOf(task.stage, rootReplica(m_groups, task))); return;
        case TaskKind::Offload:
        case TaskKind::Reload: addHostCopies(task); return;
        case TaskKind::CopyWeightsIn: copyWeightsIn(task); return;
        case TaskKind::CopyWeightsOut:
        case TaskKind::Collective:
        case TaskKind::Gather: // a group's stages have no copies that are only counted
        case TaskKind::ReduceGradients: break;
        }
        throw Error(m_groups.label(m_block), "is no task of a group's members", "use a cluster without groups");
    }

    /// Sends inside the present block.
    void sendAmid(const std::vector<TaskId>& transfers)
    {
        const TaskId block = m_block;
        for (const TaskId transfer : transfers) {
            m_block = transfer;
            addTransfers(m_groups.tasks[transfer]);
            m_left.insert(transfer);
        }
        m_block = block;
    }

    /// The values of the groups' transfer, from member to member.
    void addTransfers(const Task& task)
    {
        const bool forward = task.op == Op::F;
        bool chain = false, skips = false;
        for (const BufferId buffer : m_groups.reads(m_block))
            (m_groups.buffers[buffer].skip ? skips : chain) = true;
        const CopyEdges& edges = edgesOf(copyOf(task)); // of the maker
        for (const StageEdge* edge : forward ? edges.out : edges.in)
            if ((edge->skip ? skips : chain) && groupOf(forward ? edge->to : edge->from) == task.destination())
                carry(*edge, task.microbatch(), forward);
    }

    void carry(const StageEdge& edge, int microbatch, bool forward)
    {
        const int maker = forward ? edge.from : edge.to, consumer = forward ? edge.to : edge.from;
        for (Arrived& piece : arrivedOf(edge, microbatch, forward)) {
            const Buffer made = m_made.program.buffers[piece.buffer];
            const int to = deviceOf(consumer, piece.to);
            if (made.device == to)
                continue;
            piece.transfer =
                send(forward ? Op::F : Op::I, maker, consumer, microbatch, piece.buffer, m_makerOf[piece.buffer], to);
            piece.buffer = write(forward ? BufferKind::ReceivedOutput : BufferKind::ReceivedGradient, to, maker,
                                 microbatch, made.bytes, made.consumerStage, made.skip);
        }
    }

    /// A copy to host memory or back: every member copies its own buffers, after its previous copy in that direction.
    void addHostCopies(const Task& task)
    {
        const int copy = copyOf(task);
        const bool leaves = task.kind == TaskKind::Offload;
        for (int m = 0; m < m_stages.membersOf(copy); ++m) {
            const int device = deviceOf(copy, m);
            MemberCell& cell = cells(task)[static_cast<std::size_t>(m)];
            std::array<BufferId, 2> from = cell.onHost, to{none, none};
            if (leaves)
                from = {cell.savedUntilInputGrad, cell.savedUntilWeightGrad};
            Bytes bytes = 0;
            for (const BufferId buffer : from)
                bytes += buffer == none ? 0 : m_made.program.buffers[buffer].bytes;
            if (bytes == 0)
                continue;
            const TaskId id =
                begin(task.kind, Op::F, copy, task.microbatch(), device, -1, m_costs.hostLink->transferTime(bytes), 0);
            m_made.program.afterOnDevice[id] =
                std::exchange(m_lastCopy[static_cast<std::size_t>(device)][leaves ? 0 : 1], id);
            waitFor(id, cell.offload);
            waitFor(id, m_last[static_cast<std::size_t>(device)]);
            waitForOffloads(id, m);
            for (const BufferId buffer : from)
                operand(buffer);
            endReads();
            for (std::size_t i = 0; i < from.size(); ++i)
                if (from[i] != none)
                    to[i] = write(receivedKind(m_made.program.buffers.kind(from[i])), device, copy, task.microbatch(),
                                  m_made.program.buffers.bytes(from[i]));
            if (leaves) {
                cell.offload = id;
                cell.onHost = to;
                m_offloadOf[{m_block, m}] = id;
            } else {
                cell.reload = id;
                cell.savedUntilInputGrad = to[0];
                cell.savedUntilWeightGrad = to[1];
            }
        }
    }

    /// Waits for this member's offloads that the groups' task waits for, because their sources are freed before it.
    void waitForOffloads(TaskId id, int member)
    {
        const auto wait = [&](TaskId offload) {
            if (const auto own = m_offloadOf.find({offload, member}); own != m_offloadOf.end())
                waitFor(id, own->second);
        };
        if (m_groups.afterData[m_block] != none)
            wait(m_groups.afterData[m_block]);
        const auto [first, last] = m_offloadsBefore.equal_range(m_block);
        for (auto one = first; one != last; ++one)
            wait(one->second);
    }

    void addBlock(const Task& task)
    {
        const int copy = copyOf(task);
        const PassParts& pass = stageAt(copy).passes[indexOf(task.op)];
        const double scale =
            m_costs.microbatches.empty() ? 1.0 : m_costs.microbatches[static_cast<std::size_t>(task.microbatch())].time;
        const auto scaled = [scale](Nanoseconds time) {
            return scale == 1.0 ? time : static_cast<Nanoseconds>(std::llround(scale * static_cast<double>(time)));
        };
        const int members = m_stages.membersOf(copy);
        std::vector<std::vector<BufferId>> used(static_cast<std::size_t>(members));
        const bool isEarly = m_order.handsOverEarly(m_block);
        const std::size_t handing =
            isEarly ? stageAt(copy).passes[indexOf(Op::I)].collectives.size() : pass.parts.size() - 1;
        for (std::size_t part = 0; part < pass.parts.size(); ++part) {
            const bool isFirst = part == 0, isLast = part + 1 == pass.parts.size();
            for (int m = 0; m < members; ++m) {
                const int device = deviceOf(copy, m);
                const TaskId id = begin(TaskKind::Compute, task.op, copy, task.microbatch(), device, -1,
                                        scaled(pass.parts[part][static_cast<std::size_t>(m)]), static_cast<int>(part));
                m_made.program.afterOnDevice[id] = std::exchange(m_last[static_cast<std::size_t>(device)], id);
                if (isFirst) {
                    if (const auto pin = m_pins.find(m_block); pin != m_pins.end())
                        m_made.program.extraDependencies.push_back({id, none, pin->second});
                    readArrived(id, task, m);
                    waitForOffloads(id, m);
                }
                if (isFirst || isLast) {
                    if (isFirst || task.op != Op::R) // which then has its own in their place
                        readKept(id, task, m);
                    readOtherPieces(id, task, m);
                    readVersions(m);
                }
                if (isLast && !isFirst)
                    for (const BufferId buffer : used[static_cast<std::size_t>(m)])
                        operand(buffer);
                endReads();
                const std::size_t before = m_made.program.operands.size();
                if (isFirst) {
                    writeKept(task, m);
                    writeVersions(copy, m);
                }
                if (isFirst)
                    used[static_cast<std::size_t>(m)].assign(m_made.program.operands.begin()
                                                                 + static_cast<std::ptrdiff_t>(before),
                                                             m_made.program.operands.end());
                if (part == handing)
                    handOver(id, task, m);
            }
            if (isEarly && part == handing)
                sendAmid(m_order.leavingEarly(m_block));
            if (isLast)
                break;
            addCollective(task, members, scaled(pass.collectives[part]), static_cast<int>(part));
            sendAmid(m_order.leavingBehind(m_block, static_cast<int>(part)));
        }
        // Within one group, no task of the groups' Program carries the value.
        for (const StageEdge* edge : edgesOf(copy).out)
            if (task.op == Op::F && groupOf(edge->to) == groupOf(copy))
                carry(*edge, task.microbatch(), true);
        for (const StageEdge* edge : edgesOf(copy).in)
            if (makesInputGrad(task.op) && groupOf(edge->from) == groupOf(copy))
                carry(*edge, task.microbatch(), false);
    }

    void addCollective(const Task& task, int members, Nanoseconds duration, int index)
    {
        const int copy = copyOf(task), first = deviceOf(copy, 0);
        const TaskId id =
            begin(TaskKind::Collective, task.op, copy, task.microbatch(), first, first + members - 1, duration, index);
        endReads();
        for (int m = 0; m < members; ++m) {
            const TaskId before = std::exchange(m_last[static_cast<std::size_t>(first + m)], id);
            if (m == 0)
                m_made.program.afterOnDevice[id] = before;
            else
                waitFor(id, before);
        }
    }

    void readArrived(TaskId id, const Task& task, int member)
    {
        const auto read = [&](const std::vector<Arrived>& pieces) {
            for (const Arrived& piece : pieces)
                if (piece.to == member) {
                    operand(piece.buffer);
                    waitFor(id, piece.transfer);
                }
        };
        const CopyEdges& edges = edgesOf(copyOf(task));
        for (const StageEdge* edge : edges.in)
            if (runsForward(task.op))
                read(arrivedOf(*edge, task.microbatch(), true));
        for (const StageEdge* edge : edges.out)
            if (makesInputGrad(task.op))
                read(arrivedOf(*edge, task.microbatch(), false));
    }

    std::vector<MemberCell>& cells(const Task& task) { return cells(task, task.microbatch()); }
    std::vector<MemberCell>& cells(const Task& task, int microbatch)
    {
        const int copy = copyOf(task);
        std::vector<MemberCell>& found = m_cells[cellOf(static_cast<std::size_t>(copy), microbatch)];
        found.resize(static_cast<std::size_t>(m_stages.membersOf(copy)));
        return found;
    }

    void readKept(TaskId id, const Task& task, int member)
    {
        if (task.op == Op::F)
            return;
        const MemberCell& cell = cells(task)[static_cast<std::size_t>(member)];
        waitFor(id, cell.reload);
        if (makesInputGrad(task.op)) {
            operand(cell.savedUntilInputGrad);
            operand(cell.onHost[0]); // ends here too, since the copy back has certainly ended
        }
        operand(cell.savedUntilWeightGrad);
        operand(cell.onHost[1]);
        if (!makesInputGrad(task.op))
            operand(cell.savedFromInputGrad);
    }

    /// Attention looks back at what the earlier pieces of a sequence kept, and takes what later ones found for it.
    void readOtherPieces(TaskId id, const Task& task, int member)
    {
        const int pieces = m_groups.sequencePieces, piece = task.microbatch() % pieces;
        if (!runsForward(task.op) && !makesInputGrad(task.op))
            return;
        for (int earlier = task.microbatch() - piece; earlier < task.microbatch(); ++earlier) {
            const MemberCell& cell = cells(task, earlier)[static_cast<std::size_t>(member)];
            waitFor(id, cell.reload);
            operand(cell.savedUntilInputGrad);
            operand(cell.savedUntilWeightGrad);
        }
        if (makesInputGrad(task.op) && piece + 1 < pieces)
            operand(sequenceGradient(task, member));
    }
    BufferId& sequenceGradient(const Task& task, int member)
    {
        return m_sequenceGradients
            .try_emplace({copyOf(task), task.microbatch() / m_groups.sequencePieces, member}, none)
            .first->second;
    }

    /// The block's buffers for later blocks, and its workspace.
    void writeKept(const Task& task, int member)
    {
        const int copy = copyOf(task), device = deviceOf(copy, member);
        const StageCosts& bytes = stageAt(copy).members[static_cast<std::size_t>(member)];
        MemberCell& cell = cells(task)[static_cast<std::size_t>(member)];
        const auto kept = [&](BufferKind kind, Bytes size) {
            return write(kind, device, copy, task.microbatch(), m_costs.scaled(size, task.microbatch()));
        };
        if (task.op == Op::F) {
            cell.savedUntilInputGrad = kept(BufferKind::SavedUntilInputGrad, bytes.savedUntilInputGrad);
            cell.savedUntilWeightGrad = kept(BufferKind::SavedUntilWeightGrad, bytes.savedUntilWeightGrad);
        } else if (task.op == Op::R) {
            cell.savedUntilInputGrad = kept(BufferKind::RecomputedUntilInputGrad, bytes.recomputedUntilInputGrad);
            cell.savedUntilWeightGrad = kept(BufferKind::RecomputedUntilWeightGrad, bytes.recomputedUntilWeightGrad);
        } else if (makesInputGrad(task.op)) {
            cell.savedFromInputGrad = kept(BufferKind::SavedFromInputGrad, bytes.madeForWeightGrad(task.op));
            if ((task.microbatch() + 1) % m_groups.sequencePieces == 0)
                sequenceGradient(task, member) = kept(BufferKind::SequenceGradient, bytes.sequenceGradient);
        }
        kept(BufferKind::Workspace, bytes.workspace(task.op));
    }

    void handOver(TaskId id, const Task& task, int member)
    {
        const int copy = copyOf(task);
        const auto hand = [&](const StageEdge& edge, bool forward) {
            for (const BoundaryPiece& piece : forward ? edge.output : edge.gradients) {
                if (piece.from != member)
                    continue;
                const BufferId buffer =
                    write(forward ? BufferKind::Output : BufferKind::Gradient, deviceOf(copy, member), copy,
                          task.microbatch(), m_costs.scaled(piece.bytes, task.microbatch()),
                          forward ? -1 : edge.from % m_stages.perReplica, edge.skip);
                arrivedOf(edge, task.microbatch(), forward).push_back({piece.to, buffer, none});
                m_makerOf.resize(m_made.program.buffers.size(), none);
                m_makerOf[buffer] = id;
            }
        };
        for (const StageEdge* edge : edgesOf(copy).out)
            if (task.op == Op::F)
                hand(*edge, true);
        for (const StageEdge* edge : edgesOf(copy).in)
            if (makesInputGrad(task.op))
                hand(*edge, false);
    }

    CollectiveOrder m_order;
    std::set<TaskId> m_left;                                    ///< the groups' transfers that were sent inside a block
    std::vector<TaskId> m_makerOf;                              ///< per buffer that is handed over
    std::vector<CopyEdges> m_edges;                             ///< per copy of a stage
    std::vector<std::vector<MemberCell>> m_cells;               ///< per copy and microbatch, then member
    std::map<std::array<int, 3>, BufferId> m_sequenceGradients; ///< per copy, sequence and member
    std::vector<std::array<TaskId, 2>> m_lastCopy;              ///< per member: to the host's memory, and back
    std::multimap<TaskId, TaskId> m_offloadsBefore;             ///< of the groups' tasks
    std::map<TaskId, Nanoseconds> m_pins;                       ///< per task of the groups
    std::map<std::pair<TaskId, int>, TaskId> m_offloadOf;       ///< a member's, of the groups'
    std::vector<std::vector<Arrived>> m_outputs, m_gradients;   ///< per edge and microbatch
};

} // namespace

MemberProgram memberProgram(const Program& groups, const GroupStages& stages, const Costs& costs,
                            const std::vector<TransferPrecedence>& stated)
{
    return MemberCompilation(groups, stages, costs, stated).run();
}

} // namespace pipewright
