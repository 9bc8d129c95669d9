// SPDX-License-Identifier: GPL-3.0-or-later
// The first pass of liveness: the last use of every buffer, on its own device and by a task that copies it away; and
// how long the devices' instruction lists become. O(tasks + operands + buffers).
#pragma once

#include "core/program/instructionlist.h"

#include <algorithm>
#include <vector>

namespace pipewright {

struct LastUse {
    TaskId local = none;    ///< the last task on its device that uses or defines it; none: never freed
    TaskId transfer = none; ///< the last one that sends it, or copies or sums it beside the blocks; none: there is none
};

class LastUses {
public:
    /// Keeps references to both. `partner`: see overlapPartners().
    LastUses(const Program& program, const std::vector<TaskId>& partner) : m_program(program), m_partner(partner) {}

    /// Of the buffers of some devices: `laneOf` gives their lists, and nullptr for other devices.
    template<typename LaneOf>
    void gather(LaneOf laneOf)
    {
        m_uses.resize(m_program.buffers.size());
        const BufferId* const operands = m_program.operands.data();
        const auto count = static_cast<TaskId>(m_program.tasks.size());
        for (TaskId t = 0; t < count; ++t) {
            const Task& task = m_program.tasks[t];
            if (task.kind == TaskKind::Collective) { // no buffers of its own: the parts before and after it have them
                for (std::int32_t member = task.firstMember(); member <= task.lastMember(); ++member)
                    if (InstructionList* const lane = laneOf(member))
                        ++lane->expected;
                continue;
            }
            InstructionList* const here = laneOf(task.device);
            InstructionList* const there = task.joinsTwoDevices() ? laneOf(task.otherDevice()) : nullptr;
            if (here == nullptr && there == nullptr)
                continue;
            if (here != nullptr)
                ++here->expected;
            if (there != nullptr)
                ++there->expected;
            const BufferId *operand = operands + m_program.operandBegin[t],
                           *const split = operands + m_program.operandSplit[t],
                           *const end = operands + m_program.operandBegin[t + 1];
            if (task.kind == TaskKind::Transfer) {
                for (; here != nullptr && operand != split; ++operand)
                    noteSend(*operand, t);
                operand = there != nullptr ? split : end;
            } else if (task.kind == TaskKind::Offload || task.kind == TaskKind::ReduceGradients) {
                m_anyOffload = m_anyOffload || task.kind == TaskKind::Offload;
                for (; operand != split; ++operand)
                    noteSend(*operand, t);
            }
            for (; operand != end; ++operand)
                m_uses[*operand].local = t;
        }
        for (std::size_t b = 0; b < m_uses.size(); ++b)
            if (InstructionList* const lane = laneOf(m_program.buffers[b].device))
                noteBuffer(*lane, m_program.buffers[b], m_uses[b]);
    }

    const LastUse& operator[](BufferId buffer) const { return m_uses[buffer]; }
    bool anySentTwice() const { return !m_sentTwice.empty(); }
    bool isSentTwice(BufferId buffer) const { return anySentTwice() && m_sentTwice[buffer]; } ///< to several devices
    bool anyOffload() const { return m_anyOffload; }

private:
    void noteSend(BufferId b, TaskId t)
    {
        if (m_uses[b].transfer != none) {
            m_sentTwice.resize(m_uses.size());
            m_sentTwice[b] = true;
        }
        m_uses[b].transfer = t;
    }

    /// Buffers used by an overlapped pair are freed after both blocks, among them the workspace of the first.
    void noteBuffer(InstructionList& lane, const Buffer& buffer, LastUse& use) const
    {
        const TaskId other = use.local == none || m_partner.empty() ? none : m_partner[use.local];
        const bool endsLater = other != none && other > use.local;
        if (endsLater)
            use.local = other;
        if (isPersistent(buffer.kind)) {
            lane.persistent += buffer.bytes;
            use.local = use.transfer = none;
        } else if (buffer.kind == BufferKind::KeptGradients) { // which may be looked at behind the step
            ++lane.expected;
            use.local = none;
        } else if (buffer.kind == BufferKind::Workspace && !endsLater && !isReadBy(use)) {
            use.local = none;
        } else {
            ++lane.expected;
        }
    }

    /// Workspace of a block that is divided into parts lives from the first part to the last one, which reads it.
    bool isReadBy(const LastUse& use) const
    {
        if (!m_program.hasMembers())
            return false;
        const auto reads = m_program.reads(use.local);
        const auto at = static_cast<std::size_t>(&use - m_uses.data());
        return std::find(reads.begin(), reads.end(), static_cast<BufferId>(at)) != reads.end();
    }

    const Program& m_program;
    const std::vector<TaskId>& m_partner;
    std::vector<LastUse> m_uses;   ///< per buffer
    std::vector<bool> m_sentTwice; ///< per buffer; empty when none is
    bool m_anyOffload = false;
};

} // namespace pipewright
