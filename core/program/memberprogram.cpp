// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the groups' tasks in their order. A block becomes, part by part, a task on every member and then the
// collective; the first part reads what arrived and defines what the block keeps, the last one hands over. Liveness is
// the compiler's own (liveness.h), on the members' tasks.
#include "core/program/memberprogram.h"

#include "core/program/liveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace pipewright {

namespace {

/// Buffers of one stage and microbatch on one member; where the stage recomputes, R's in place of F's.
struct MemberCell {
    BufferId savedUntilInputGrad = none, savedUntilWeightGrad = none, savedFromInputGrad = none;
};

/// A piece of a stage's output, or of its gradient, where its consumer reads it.
struct Arrived {
    int to = 0; ///< member of the consumer's group
    BufferId buffer = none;
    TaskId transfer = none; ///< none: it was made there
};

class MemberCompilation {
public:
    MemberCompilation(const Program& groups, const GroupStages& stages, const Costs& costs)
        : m_groups(groups), m_stages(stages), m_costs(costs), m_last(static_cast<std::size_t>(stages.members()), none)
    {
        for (std::size_t device = 0; device < stages.membersOfDevice.size(); ++device) {
            m_first.push_back(static_cast<int>(m_made.program.groupOfDevice.size()));
            m_made.program.groupOfDevice.insert(m_made.program.groupOfDevice.end(),
                                                static_cast<std::size_t>(stages.membersOfDevice[device]),
                                                static_cast<std::int32_t>(device));
        }
        const std::size_t cells =
            static_cast<std::size_t>(groups.stages()) * static_cast<std::size_t>(groups.microbatches);
        m_cells.resize(cells);
        m_outputs.resize(cells);
        m_gradients.resize(cells);
    }

    MemberProgram run()
    {
        Program& program = m_made.program;
        program.shape() = m_groups;
        program.blockingTransfers = m_groups.blockingTransfers;
        addPersistent();
        for (m_block = 0; m_block < m_groups.tasks.size(); ++m_block)
            add(m_groups.tasks[m_block]);
        program.operandBegin.push_back(static_cast<std::uint32_t>(program.operands.size()));
        projectOntoDevices(program, m_stages.members(), outstandingSends, 1);
        return std::move(m_made);
    }

private:
    static constexpr int outstandingSends = 2;

    int groupOf(int stage) const { return m_groups.deviceOfStage[static_cast<std::size_t>(stage)]; }
    int membersOf(int stage) const { return m_stages.membersOfDevice[static_cast<std::size_t>(groupOf(stage))]; }
    int deviceOf(int stage, int member) const { return m_first[static_cast<std::size_t>(groupOf(stage))] + member; }
    const GroupStage& stageAt(int stage) const { return m_stages.stages[static_cast<std::size_t>(stage)]; }
    std::size_t cellOf(int stage, int microbatch) const
    {
        return static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_groups.microbatches)
               + static_cast<std::size_t>(microbatch);
    }

    void addPersistent()
    {
        for (int s = 0; s < m_groups.stages(); ++s)
            for (int m = 0; m < membersOf(s); ++m) {
                const StageCosts& bytes = stageAt(s).members[static_cast<std::size_t>(m)];
                addBuffer(BufferKind::Parameters, deviceOf(s, m), s, -1, bytes.parameters);
                addBuffer(BufferKind::Gradients, deviceOf(s, m), s, -1, bytes.gradients);
                addBuffer(BufferKind::OptimizerState, deviceOf(s, m), s, -1, bytes.optimizerState);
            }
    }

    BufferId addBuffer(BufferKind kind, int device, int stage, int microbatch, Bytes bytes, int consumer = -1)
    {
        m_made.program.buffers.push_back({bytes, kind, 0, device, stage, microbatch, consumer, false});
        return static_cast<BufferId>(m_made.program.buffers.size() - 1);
    }

    TaskId begin(TaskKind kind, Op op, int stage, int microbatch, int device, int peer, Nanoseconds duration, int part)
    {
        Program& program = m_made.program;
        program.tasks.push_back({kind, op, 0, stage, microbatch, device, peer});
        program.partOfTask.push_back(part);
        program.afterOnDevice.push_back(none);
        program.afterData.push_back(none);
        program.operandBegin.push_back(static_cast<std::uint32_t>(program.operands.size()));
        m_made.durations.push_back(duration);
        m_made.blockOfTask.push_back(m_block);
        return static_cast<TaskId>(program.tasks.size() - 1);
    }
    void endReads()
    {
        m_made.program.operandSplit.push_back(static_cast<std::uint32_t>(m_made.program.operands.size()));
    }
    void operand(BufferId buffer)
    {
        if (buffer != none)
            m_made.program.operands.push_back(buffer);
    }
    BufferId write(BufferKind kind, int device, int stage, int microbatch, Bytes bytes, int consumer = -1)
    {
        if (bytes <= 0)
            return none;
        const BufferId buffer = addBuffer(kind, device, stage, microbatch, bytes, consumer);
        operand(buffer);
        return buffer;
    }
    void waitFor(TaskId task, TaskId input)
    {
        if (input == none)
            return;
        TaskId& first = m_made.program.afterData[task];
        if (first == none)
            first = input;
        else if (first != input)
            m_made.program.extraDependencies.push_back({task, input, 0});
    }

    void add(const Task& task)
    {
        switch (task.kind) {
        case TaskKind::Compute: addBlock(task); return;
        case TaskKind::Update: addUpdate(task); return;
        case TaskKind::Transfer: addTransfers(task); return;
        case TaskKind::Reduce:
        case TaskKind::ReplicaSum:
        case TaskKind::PutInPlace:
        case TaskKind::SetOut:
        case TaskKind::Collective:
        case TaskKind::Offload:
        case TaskKind::Reload: break;
        }
        throw Error(m_groups.label(m_block), "is no task of a group's members", "use a cluster without groups");
    }

    void addUpdate(const Task& task)
    {
        for (int m = 0; m < membersOf(task.stage); ++m) {
            const int device = deviceOf(task.stage, m);
            const Nanoseconds time =
                stageAt(task.stage).passes[indexOf(Op::U)].parts.front()[static_cast<std::size_t>(m)];
            const TaskId id = begin(TaskKind::Update, Op::U, task.stage, task.microbatch, device, -1, time, 0);
            m_made.program.afterOnDevice[id] = std::exchange(m_last[static_cast<std::size_t>(device)], id);
            endReads();
        }
    }

    /// The values of the groups' transfer, from member to member.
    void addTransfers(const Task& task)
    {
        const bool forward = task.op == Op::F;
        // A gradient is named by the stage that made it.
        const int stage = forward ? task.stage : task.stage - 1;
        const int maker = forward ? stage : stage + 1, consumer = forward ? stage + 1 : stage;
        carry(stage, maker, consumer, task.microbatch, forward);
    }

    void carry(int stage, int maker, int consumer, int microbatch, bool forward)
    {
        std::vector<Arrived>& pieces = (forward ? m_outputs : m_gradients)[cellOf(stage, microbatch)];
        const LinkCosts& link = groupOf(maker) == groupOf(consumer)
                                    ? m_stages.linkInside[static_cast<std::size_t>(groupOf(maker))]
                                    : m_costs.linkBetween(groupOf(maker), groupOf(consumer));
        for (Arrived& piece : pieces) {
            const Buffer made = m_made.program.buffers[piece.buffer];
            const int to = deviceOf(consumer, piece.to);
            if (made.device == to)
                continue;
            const TaskId id = begin(TaskKind::Transfer, forward ? Op::F : Op::I, maker, microbatch, made.device, to,
                                    link.transferTime(made.bytes), 0);
            waitFor(id, m_makerOf[piece.buffer]);
            operand(piece.buffer);
            endReads();
            piece.buffer = write(forward ? BufferKind::ReceivedOutput : BufferKind::ReceivedGradient, to, made.stage,
                                 microbatch, made.bytes, made.consumerStage);
            piece.transfer = id;
        }
    }

    void addBlock(const Task& task)
    {
        const PassParts& pass = stageAt(task.stage).passes[indexOf(task.op)];
        const double scale =
            m_costs.microbatches.empty() ? 1.0 : m_costs.microbatches[static_cast<std::size_t>(task.microbatch)].time;
        const auto scaled = [scale](Nanoseconds time) {
            return scale == 1.0 ? time : static_cast<Nanoseconds>(std::llround(scale * static_cast<double>(time)));
        };
        const int members = membersOf(task.stage);
        std::vector<std::vector<BufferId>> used(static_cast<std::size_t>(members));
        for (std::size_t part = 0; part < pass.parts.size(); ++part) {
            const bool isFirst = part == 0, isLast = part + 1 == pass.parts.size();
            for (int m = 0; m < members; ++m) {
                const int device = deviceOf(task.stage, m);
                const TaskId id = begin(TaskKind::Compute, task.op, task.stage, task.microbatch, device, -1,
                                        scaled(pass.parts[part][static_cast<std::size_t>(m)]), static_cast<int>(part));
                m_made.program.afterOnDevice[id] = std::exchange(m_last[static_cast<std::size_t>(device)], id);
                if (isFirst)
                    readArrived(id, task, m);
                if (isFirst || isLast)
                    readKept(task, m);
                if (isLast && !isFirst)
                    for (const BufferId buffer : used[static_cast<std::size_t>(m)])
                        operand(buffer);
                endReads();
                const std::size_t before = m_made.program.operands.size();
                if (isFirst)
                    writeKept(task, m);
                if (isFirst)
                    used[static_cast<std::size_t>(m)].assign(m_made.program.operands.begin()
                                                                 + static_cast<std::ptrdiff_t>(before),
                                                             m_made.program.operands.end());
                if (isLast)
                    handOver(id, task, m);
            }
            if (!isLast)
                addCollective(task, members, scaled(pass.collectives[part]), static_cast<int>(part));
        }
        // Where the consumer is of the same group no task of the groups carries the value.
        if (task.op == Op::F && task.stage + 1 < m_groups.stages() && groupOf(task.stage + 1) == groupOf(task.stage))
            carry(task.stage, task.stage, task.stage + 1, task.microbatch, true);
        if (makesInputGrad(task.op) && task.stage > 0 && groupOf(task.stage - 1) == groupOf(task.stage))
            carry(task.stage - 1, task.stage, task.stage - 1, task.microbatch, false);
    }

    void addCollective(const Task& task, int members, Nanoseconds duration, int index)
    {
        const int first = deviceOf(task.stage, 0);
        const TaskId id = begin(TaskKind::Collective, task.op, task.stage, task.microbatch, first, first + members - 1,
                                duration, index);
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
        if ((task.op == Op::F || task.op == Op::R) && task.stage > 0)
            read(m_outputs[cellOf(task.stage - 1, task.microbatch)]);
        if (makesInputGrad(task.op) && task.stage + 1 < m_groups.stages())
            read(m_gradients[cellOf(task.stage, task.microbatch)]);
    }

    std::vector<MemberCell>& cells(const Task& task)
    {
        std::vector<MemberCell>& found = m_cells[cellOf(task.stage, task.microbatch)];
        found.resize(static_cast<std::size_t>(membersOf(task.stage)));
        return found;
    }

    void readKept(const Task& task, int member)
    {
        if (task.op == Op::F || task.op == Op::R)
            return;
        const MemberCell& cell = cells(task)[static_cast<std::size_t>(member)];
        if (makesInputGrad(task.op))
            operand(cell.savedUntilInputGrad);
        operand(cell.savedUntilWeightGrad);
        if (!makesInputGrad(task.op))
            operand(cell.savedFromInputGrad);
    }

    /// What the block makes for later ones, and the room that it works in.
    void writeKept(const Task& task, int member)
    {
        const int device = deviceOf(task.stage, member);
        const StageCosts& bytes = stageAt(task.stage).members[static_cast<std::size_t>(member)];
        MemberCell& cell = cells(task)[static_cast<std::size_t>(member)];
        const auto kept = [&](BufferKind kind, Bytes size) {
            return write(kind, device, task.stage, task.microbatch, m_costs.scaled(size, task.microbatch));
        };
        if (task.op == Op::F) {
            cell.savedUntilInputGrad = kept(BufferKind::SavedUntilInputGrad, bytes.savedUntilInputGrad);
            cell.savedUntilWeightGrad = kept(BufferKind::SavedUntilWeightGrad, bytes.savedUntilWeightGrad);
        } else if (task.op == Op::R) {
            cell.savedUntilInputGrad = kept(BufferKind::RecomputedUntilInputGrad, bytes.recomputedUntilInputGrad);
            cell.savedUntilWeightGrad = kept(BufferKind::RecomputedUntilWeightGrad, bytes.recomputedUntilWeightGrad);
        } else if (makesInputGrad(task.op)) {
            cell.savedFromInputGrad = kept(BufferKind::SavedFromInputGrad, bytes.savedFromInputGrad);
        }
        kept(BufferKind::Workspace, workspaceOf(task.op, bytes));
    }

    static Bytes workspaceOf(Op op, const StageCosts& bytes)
    {
        switch (op) {
        case Op::F: return bytes.workspaceForward;
        case Op::B: return bytes.workspaceBackward;
        case Op::I: return bytes.workspaceInputGrad;
        case Op::W: return bytes.workspaceWeightGrad;
        case Op::R: return bytes.workspaceRecompute;
        case Op::U: return 0;
        }
        return 0;
    }

    void handOver(TaskId id, const Task& task, int member)
    {
        const int device = deviceOf(task.stage, member);
        const auto hand = [&](const std::vector<BoundaryPiece>& pieces, BufferKind kind, int consumer,
                              std::vector<Arrived>& made) {
            for (const BoundaryPiece& piece : pieces) {
                if (piece.from != member)
                    continue;
                const BufferId buffer = write(kind, device, task.stage, task.microbatch, piece.bytes, consumer);
                made.push_back({piece.to, buffer, none});
                m_makerOf.resize(m_made.program.buffers.size(), none);
                m_makerOf[buffer] = id;
            }
        };
        if (task.op == Op::F && task.stage + 1 < m_groups.stages())
            hand(stageAt(task.stage).output, BufferKind::Output, -1, m_outputs[cellOf(task.stage, task.microbatch)]);
        if (makesInputGrad(task.op) && task.stage > 0)
            hand(stageAt(task.stage - 1).gradients, BufferKind::Gradient, task.stage - 1,
                 m_gradients[cellOf(task.stage - 1, task.microbatch)]);
    }

    const Program& m_groups;
    const GroupStages& m_stages;
    const Costs& m_costs;
    MemberProgram m_made;
    TaskId m_block = 0;                                       ///< of the groups' Program, that is being taken apart
    std::vector<int> m_first;                                 ///< per group: its first member
    std::vector<TaskId> m_last;                               ///< per member
    std::vector<TaskId> m_makerOf;                            ///< per buffer that is handed over
    std::vector<std::vector<MemberCell>> m_cells;             ///< per stage and microbatch, then member
    std::vector<std::vector<Arrived>> m_outputs, m_gradients; ///< per stage and microbatch
};

} // namespace

MemberProgram memberProgram(const Program& groups, const GroupStages& stages, const Costs& costs)
{
    return MemberCompilation(groups, stages, costs).run();
}

} // namespace pipewright
