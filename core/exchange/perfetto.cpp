// SPDX-License-Identifier: GPL-3.0-or-later
// Writes TracePacket messages field by field: descriptors of tracks, then slices with flows, then counters. O(tasks log
// tasks).
#include "core/exchange/perfetto.h"

#include "core/exchange/protobuf.h"
#include "core/exchange/tracetracks.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace pipewright {

namespace {

// Field numbers, by message.
namespace trace {
constexpr std::uint32_t packet = 1;
}
namespace packet {
constexpr std::uint32_t timestamp = 8, sequence = 10, event = 11, sequenceFlags = 13, descriptor = 60;
}
namespace track {
constexpr std::uint32_t uuid = 1, name = 2, process = 3, parent = 5, counter = 8, childOrdering = 11, rank = 12;
}
namespace process {
constexpr std::uint32_t pid = 1, name = 6;
}
namespace counter {
constexpr std::uint32_t unit = 3;
}
namespace event {
constexpr std::uint32_t type = 9, track = 11, categories = 22, name = 23, counterValue = 30, flow = 47, lastFlow = 48;
}

enum EventType : std::uint64_t { Begin = 1, End = 2, Counter = 4 };
constexpr std::uint64_t explicitOrder = 3, bytesUnit = 3, stateCleared = 1, sequenceId = 1;

/// Tracks of one device in one timeline: 0 computations, 1 memory, 2 and on transfers.
std::uint64_t trackId(std::size_t device, int timeline, std::size_t which)
{
    return (static_cast<std::uint64_t>(device + 1) << 32) | (static_cast<std::uint64_t>(timeline + 1) << 24) | which;
}
std::uint64_t processId(std::size_t device)
{
    return static_cast<std::uint64_t>(device + 1) << 32;
}

/// The transfers of each task, by what stands at one of their ends: in compressed rows.
class TransfersOf {
public:
    /// `end`: per transfer.
    TransfersOf(const Program& program, const std::vector<TaskId>& end) : m_begin(program.tasks.size() + 1, 0)
    {
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].kind == TaskKind::Transfer && end[t] != none)
                ++m_begin[end[t]];
        std::uint32_t sum = 0;
        for (std::uint32_t& begin : m_begin)
            begin = sum += begin; // the end of its row …
        m_transfers.resize(sum);
        for (TaskId t = static_cast<TaskId>(program.tasks.size()); t-- > 0;) // … and the beginning once it is filled
            if (program.tasks[t].kind == TaskKind::Transfer && end[t] != none)
                m_transfers[--m_begin[end[t]]] = t;
    }

    std::span<const TaskId> of(TaskId task) const
    {
        return {m_transfers.data() + m_begin[task], m_transfers.data() + m_begin[task + 1]};
    }

private:
    std::vector<std::uint32_t> m_begin; ///< per task and one more
    std::vector<TaskId> m_transfers;
};

class Writer {
public:
    Writer(const Program& program, const Pieces& to)
        : m_program(program), m_to(to), m_consumer(firstConsumers(program)), m_madeBy(program, program.afterData),
          m_neededBy(program, m_consumer)
    {
        for (std::size_t device = 0; device < program.devices.size(); ++device)
            describeProcess(device);
    }

    void add(const Timeline& timeline, int which)
    {
        std::vector<std::vector<TaskId>> blocks(m_program.devices.size()), arrivals(m_program.devices.size());
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            if (timeline.start[t] == notRun)
                continue;
            const Task& task = m_program.tasks[t];
            const bool beside = moves(task.kind) || isReduction(task.kind);
            (beside ? arrivals : blocks)[task.kind == TaskKind::Transfer ? task.peer : task.device].push_back(t);
        }
        const std::string name = which == 0 ? "predicted" : "measured";
        for (std::size_t device = 0; device < m_program.devices.size(); ++device) {
            addSlices(timeline, which, device, blocks[device], 0, name);
            addSlices(timeline, which, device, arrivals[device], 2, name + " transfers");
            if (device < timeline.memory.size() && !timeline.memory[device].empty())
                addMemory(timeline.memory[device], which, device, name + " memory");
        }
    }

    void finish() { m_to(std::exchange(m_trace, {}).bytes()); }

private:
    void write(ProtoMessage& packet)
    {
        packet.number(packet::sequence, sequenceId);
        if (m_first)
            packet.number(packet::sequenceFlags, stateCleared);
        m_first = false;
        m_trace.message(trace::packet, packet);
        if (m_trace.bytes().size() >= PieceBuffer::most) {
            m_to(m_trace.bytes());
            m_trace.clear();
        }
    }

    void describeProcess(std::size_t device)
    {
        ProtoMessage process, descriptor, packet;
        process.number(process::pid, device + 1);
        process.text(process::name, "device " + std::to_string(device));
        descriptor.number(track::uuid, processId(device));
        descriptor.message(track::process, process);
        descriptor.number(track::childOrdering, explicitOrder);
        packet.message(packet::descriptor, descriptor);
        write(packet);
    }

    void describeTrack(std::uint64_t id, std::size_t device, const std::string& name, std::uint64_t rank,
                       bool isCounter)
    {
        ProtoMessage descriptor, packet;
        descriptor.number(track::uuid, id);
        descriptor.text(track::name, name);
        descriptor.number(track::parent, processId(device));
        descriptor.number(track::rank, rank);
        if (isCounter) {
            ProtoMessage counter;
            counter.number(counter::unit, bytesUnit);
            descriptor.message(track::counter, counter);
        }
        packet.message(packet::descriptor, descriptor);
        write(packet);
    }

    /// Slices of a track must nest, so transfers that overlap go to tracks of their own.
    void addSlices(const Timeline& timeline, int which, std::size_t device, std::vector<TaskId>& tasks,
                   std::size_t firstTrack, const std::string& name)
    {
        std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
            return timeline.start[a] != timeline.start[b] ? timeline.start[a] < timeline.start[b]
                                                          : timeline.end[a] < timeline.end[b];
        });
        FreeRows rows;
        for (const TaskId t : tasks) {
            const std::size_t before = rows.count(), row = rows.rowFor(timeline.start[t], timeline.end[t]);
            const std::uint64_t id =
                trackId(device, which, firstTrack == 0 ? (row == 0 ? 0 : 0x8000 + row) : firstTrack + row);
            if (row == before)
                describeTrack(id, device, row == 0 ? name : name + " " + std::to_string(row + 1),
                              (firstTrack == 0 ? 0u : 10u) + static_cast<unsigned>(which), false);
            addSlice(timeline, which, t, id);
        }
    }

    void addSlice(const Timeline& timeline, int which, TaskId t, std::uint64_t id)
    {
        ProtoMessage begin, packet;
        begin.number(event::type, Begin);
        begin.number(event::track, id);
        begin.text(event::categories, categoryOf(m_program.tasks[t]));
        begin.text(event::name, m_program.label(t));
        const auto flowOf = [&](TaskId transfer) { return (static_cast<std::uint64_t>(which) << 32) + transfer + 1; };
        const auto ran = [&](TaskId task) { return task != none && timeline.start[task] != notRun; };
        if (m_program.tasks[t].kind == TaskKind::Transfer) {
            begin.fixed(ran(m_consumer[t]) ? event::flow : event::lastFlow, flowOf(t));
        } else {
            for (const TaskId transfer : m_madeBy.of(t))
                if (ran(transfer))
                    begin.fixed(event::flow, flowOf(transfer));
            for (const TaskId transfer : m_neededBy.of(t))
                if (ran(transfer))
                    begin.fixed(event::lastFlow, flowOf(transfer));
        }
        packet.number(packet::timestamp, static_cast<std::uint64_t>(timeline.start[t]));
        packet.message(packet::event, begin);
        write(packet);
        ProtoMessage end, endPacket;
        end.number(event::type, End);
        end.number(event::track, id);
        endPacket.number(packet::timestamp, static_cast<std::uint64_t>(timeline.end[t]));
        endPacket.message(packet::event, end);
        write(endPacket);
    }

    void addMemory(const std::vector<MemorySample>& samples, int which, std::size_t device, const std::string& name)
    {
        const std::uint64_t id = trackId(device, which, 1);
        describeTrack(id, device, name, 20u + static_cast<unsigned>(which), true);
        for (const MemorySample& sample : samples) {
            ProtoMessage event, packet;
            event.number(event::type, Counter);
            event.number(event::track, id);
            event.number(event::counterValue, static_cast<std::uint64_t>(sample.bytes));
            packet.number(packet::timestamp, static_cast<std::uint64_t>(std::max<Nanoseconds>(0, sample.time)));
            packet.message(packet::event, event);
            write(packet);
        }
    }

    const Program& m_program;
    const Pieces& m_to;
    std::vector<TaskId> m_consumer; ///< per transfer
    TransfersOf m_madeBy, m_neededBy;
    ProtoMessage m_trace; ///< what is still to be handed on
    bool m_first = true;
};

} // namespace

void perfettoTrace(const Program& program, const Timeline& predicted, const Timeline* measured, const Pieces& to)
{
    Writer writer(program, to);
    writer.add(predicted, 0);
    if (measured)
        writer.add(*measured, 1);
    writer.finish();
}

} // namespace pipewright
