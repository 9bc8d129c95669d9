// SPDX-License-Identifier: GPL-3.0-or-later
// Appends tasks, buffers and operands to a member Program, as TaskWriter does to one of stages: a task is begun, its
// reads are listed and ended, then its writes; the next one begins where they end.
#pragma once

#include "core/program/memberprogram.h"

namespace pipewright {

class MemberWriter {
protected:
    /// Keeps a reference.
    explicit MemberWriter(const GroupStages& stages) : m_stages(stages) {}

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
        program.tasks.push_back({kind, op, static_cast<std::uint16_t>(copy / m_stages.perReplica),
                                 copy % m_stages.perReplica, microbatch, device, peer});
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

    const GroupStages& m_stages;
    MemberProgram m_made;
    TaskId m_block = 0; ///< of the groups' Program, that is being taken apart
};

} // namespace pipewright
