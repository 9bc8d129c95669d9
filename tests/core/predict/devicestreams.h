// SPDX-License-Identifier: GPL-3.0-or-later
// The streams of a simulated machine (devicesimulation.h) in which a device sends and receives one after the other: one
// for each device, filled from its instruction list.
#pragma once

#include "core/program/program.h"

#include <limits>
#include <set>
#include <vector>

namespace pipewright::test {

class DeviceStreams {
public:
    explicit DeviceStreams(const Program& program)
    {
        for (const Program::Device& device : program.devices)
            for (Stream& stream = m_streams.emplace_back(); const Instruction& instruction : device.instructions)
                if (instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Receive
                    || instruction.kind == InstructionKind::Gather
                    || instruction.kind == InstructionKind::ReduceGradients)
                    stream.transfers.push_back(instruction.task);
    }

    /// Whether both devices of the transfer have come to it, or the one of an exchange with copies.
    bool comeTo(TaskId transfer, const Task& task, Nanoseconds now) const
    {
        const auto comes = [&](const Stream& stream) {
            return stream.freeFrom <= now && stream.transfers[stream.next] == transfer;
        };
        return comes(of(task.device)) && comes(of(task.recordedOn()));
    }
    /// It leaves the queues; it may still wait for a bus.
    void take(const Task& task)
    {
        for (const int device : std::set{task.device, task.recordedOn()}) {
            ++of(device).next;
            of(device).freeFrom = std::numeric_limits<Nanoseconds>::max();
        }
    }
    void end(const Task& task, Nanoseconds at) { of(task.device).freeFrom = of(task.recordedOn()).freeFrom = at; }
    template<typename See>
    void eachEnd(See see) const
    {
        for (const Stream& stream : m_streams)
            see(stream.freeFrom);
    }

private:
    struct Stream {
        std::vector<TaskId> transfers;
        std::size_t next = 0;
        Nanoseconds freeFrom = 0;
    };
    Stream& of(int device) { return m_streams[static_cast<std::size_t>(device)]; }
    const Stream& of(int device) const { return m_streams[static_cast<std::size_t>(device)]; }

    std::vector<Stream> m_streams;
};

} // namespace pipewright::test
