// SPDX-License-Identifier: GPL-3.0-or-later
// Descriptors of tracks, then slices with flows, then counters. O(tasks log tasks).
#include "core/exchange/perfetto.h"

#include "core/exchange/perfettopackets.h"
#include "core/exchange/tracetracks.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace pipewright {

namespace {

/// Tracks of one device in one timeline: 0 computations, 1 memory, 2 and on transfers.
std::uint64_t trackId(std::size_t device, int timeline, std::size_t which)
{
    return (static_cast<std::uint64_t>(device + 1) << 32) | (static_cast<std::uint64_t>(timeline + 1) << 24) | which;
}
std::uint64_t processId(std::size_t device)
{
    return static_cast<std::uint64_t>(device + 1) << 32;
}

/// The transfers that begin, or end, at each task, as compressed sparse rows.
class TransfersOf {
public:
    /// `end`: per transfer the task at the chosen end.
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
        : m_program(program), m_packets(to), m_consumer(firstConsumers(program)), m_madeBy(program, program.afterData),
          m_neededBy(program, m_consumer)
    {
        for (std::size_t device = 0; device < program.devices.size(); ++device)
            m_packets.process(processId(device), device + 1, "device " + std::to_string(device));
    }

    /// `curve`: source of the memory curves; null: the timeline's own.
    void add(const Timeline& timeline, int which, const CurveOf& curve)
    {
        std::vector<std::vector<TaskId>> blocks(m_program.devices.size()), arrivals(m_program.devices.size());
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            if (timeline.start[t] == notRun)
                continue;
            const Task& task = m_program.tasks[t];
            (isBesideBlocks(task.kind) ? arrivals : blocks)[task.recordedOn()].push_back(t);
        }
        const std::string name = which == 0 ? "predicted" : "measured";
        for (std::size_t device = 0; device < m_program.devices.size(); ++device) {
            addSlices(timeline, which, device, blocks[device], 0, name);
            addSlices(timeline, which, device, arrivals[device], 2, name + " transfers");
            blocks[device] = arrivals[device] = {};
            if (curve)
                addMemory(curve(static_cast<int>(device)), which, device, name + " memory");
            else if (device < timeline.memory.size())
                addMemory(timeline.memory[device], which, device, name + " memory");
        }
    }

    void finish() { m_packets.finish(); }

private:
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
                m_packets.track(id, processId(device), row == 0 ? name : name + " " + std::to_string(row + 1),
                                (firstTrack == 0 ? 0u : 10u) + static_cast<unsigned>(which),
                                PerfettoPackets::Counts::Nothing);
            addSlice(timeline, which, t, id);
        }
    }

    void addSlice(const Timeline& timeline, int which, TaskId t, std::uint64_t id)
    {
        std::vector<std::uint64_t> flows, lastFlows;
        const auto flowOf = [&](TaskId transfer) { return (static_cast<std::uint64_t>(which) << 32) + transfer + 1; };
        const auto ran = [&](TaskId task) { return task != none && timeline.start[task] != notRun; };
        if (m_program.tasks[t].kind == TaskKind::Transfer) {
            (ran(m_consumer[t]) ? flows : lastFlows).push_back(flowOf(t));
        } else {
            for (const TaskId transfer : m_madeBy.of(t))
                if (ran(transfer))
                    flows.push_back(flowOf(transfer));
            for (const TaskId transfer : m_neededBy.of(t))
                if (ran(transfer))
                    lastFlows.push_back(flowOf(transfer));
        }
        m_packets.slice(id, timeline.start[t], timeline.end[t], categoryOf(m_program, m_program.tasks[t]),
                        m_program.label(t), flows, lastFlows);
    }

    void addMemory(const std::vector<MemorySample>& samples, int which, std::size_t device, const std::string& name)
    {
        if (samples.empty())
            return;
        const std::uint64_t id = trackId(device, which, 1);
        m_packets.track(id, processId(device), name, 20u + static_cast<unsigned>(which),
                        PerfettoPackets::Counts::Bytes);
        for (const MemorySample& sample : samples)
            m_packets.value(id, sample.time, sample.bytes);
    }

    const Program& m_program;
    PerfettoPackets m_packets;
    std::vector<TaskId> m_consumer; ///< per transfer
    TransfersOf m_madeBy, m_neededBy;
};

} // namespace

void perfettoTrace(const Program& program, const Timeline& predicted, const Timeline* measured, const Pieces& to,
                   const CurveOf& curve)
{
    Writer writer(program, to);
    writer.add(predicted, 0, curve);
    if (measured)
        writer.add(*measured, 1, {});
    writer.finish();
}

} // namespace pipewright
