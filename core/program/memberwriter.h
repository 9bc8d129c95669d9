// SPDX-License-Identifier: GPL-3.0-or-later
// Appends tasks, buffers and operands to a member Program, as TaskWriter does to one of stages: a task is begun, its
// reads are listed and ended, then its writes; the next one begins where they end.
#pragma once

#include "core/program/memberprogram.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace pipewright {

class MemberWriter {
protected:
    /// Keeps references to all.
    MemberWriter(const Program& groups, const GroupStages& stages, const Costs& costs)
        : m_groups(groups), m_stages(stages), m_costs(costs), m_last(static_cast<std::size_t>(stages.members()), none)
    {
        for (std::size_t device = 0; device < stages.membersOfDevice.size(); ++device) {
            m_first.push_back(static_cast<int>(m_made.program.groupOfDevice.size()));
            m_made.program.groupOfDevice.insert(m_made.program.groupOfDevice.end(),
                                                static_cast<std::size_t>(stages.membersOfDevice[device]),
                                                static_cast<std::int32_t>(device));
        }
    }

    int copyOf(const Task& task) const { return m_stages.copyOf(task.stage, task.replica); }
    int groupOf(int copy) const { return m_stages.deviceOfCopy[static_cast<std::size_t>(copy)]; }
    int deviceOf(int copy, int member) const { return m_first[static_cast<std::size_t>(groupOf(copy))] + member; }
    const GroupStage& stageAt(int copy) const { return m_stages.stages[static_cast<std::size_t>(copy)]; }

    BufferId addBuffer(BufferKind kind, int device, int copy, int microbatch, Bytes bytes, int consumer = -1,
                       bool skip = false)
    {
        m_made.program.buffers.push_back({bytes, kind, static_cast<std::uint16_t>(copy / m_stages.perReplica), device,
                                          copy % m_stages.perReplica, microbatch, consumer, skip});
        return static_cast<BufferId>(m_made.program.buffers.size() - 1);
    }

    TaskId begin(TaskKind kind, Op op, int copy, int microbatch, int device, int peer, Nanoseconds duration, int part)
    {
        Program& program = m_made.program;
        program.tasks.emplace_back(kind, op, copy / m_stages.perReplica, copy % m_stages.perReplica, microbatch, device,
                                   peer);
        program.partOfTask.push_back(part);
        program.afterOnDevice.push_back(none);
        program.afterData.push_back(none);
        program.operandBegin.push_back(static_cast<std::uint32_t>(program.operands.size()));
        if (m_groups.versioned())
            program.weights.push_back(m_groups.weights[m_block]);
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
    BufferId write(BufferKind kind, int device, int copy, int microbatch, Bytes bytes, int consumer = -1,
                   bool skip = false)
    {
        if (bytes <= 0)
            return none;
        const BufferId buffer = addBuffer(kind, device, copy, microbatch, bytes, consumer, skip);
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

    /// The member's part of the copies of weights that the groups' task reads.
    void readVersions(int member)
    {
        for (const BufferId buffer : m_groups.reads(m_block))
            if (isVersion(m_groups.buffers.kind(buffer)))
                operand(m_versions.at({buffer, member}));
    }
    void writeVersions(int copy, int member)
    {
        for (const BufferId buffer : m_groups.writes(m_block))
            if (const Buffer made = m_groups.buffers[buffer]; isVersion(made.kind))
                m_versions[{buffer, member}] =
                    write(made.kind, deviceOf(copy, member), copy, made.microbatch,
                          stageAt(copy).members[static_cast<std::size_t>(member)].parameters);
    }
    static bool isVersion(BufferKind kind)
    {
        return kind == BufferKind::WeightVersion || kind == BufferKind::PredictedWeights;
    }

    /// Begins a transfer of a buffer, whose copy at its destination is to be written.
    TaskId send(Op op, int maker, int consumer, int microbatch, BufferId buffer, TaskId made, int to)
    {
        const LinkCosts& link = groupOf(maker) == groupOf(consumer)
                                    ? m_stages.linkInside[static_cast<std::size_t>(groupOf(maker))]
                                    : m_costs.linkBetween(groupOf(maker), groupOf(consumer));
        const Buffer from = m_made.program.buffers[buffer];
        const TaskId id =
            begin(TaskKind::Transfer, op, maker, microbatch, from.device, to, link.transferTime(from.bytes), 0);
        waitFor(id, made);
        TaskId &here = m_last[static_cast<std::size_t>(from.device)], &there = m_last[static_cast<std::size_t>(to)];
        if (m_groups.blocks()) {
            m_made.program.afterOnDevice[id] = here;
            waitFor(id, there);
            here = there = id;
        } else if (m_behindBlocks.contains(m_block)) {
            waitFor(id, here);
        }
        operand(buffer);
        endReads();
        return id;
    }

    const Program& m_groups;
    const GroupStages& m_stages;
    const Costs& m_costs;
    std::vector<int> m_first;                                ///< per group: its first member
    std::vector<TaskId> m_last;                              ///< per member
    std::map<std::pair<BufferId, int>, BufferId> m_versions; ///< per groups' buffer and member
    std::set<TaskId> m_behindBlocks; ///< the groups' tasks whose sends wait until their device comes to them
    MemberProgram m_made;
    TaskId m_block = 0; ///< of the groups' Program, that is being taken apart
};

} // namespace pipewright
