// SPDX-License-Identifier: GPL-3.0-or-later
// Simulates a Program on a machine, for tests: devices issue their instruction lists, transfers run beside them, a bus
// serves the transfer that is ready first. Time advances from event to event, and durations and sizes follow from the
// costs by formulas of its own: it shares nothing with the evaluator and does not read the dependencies of tasks.
#pragma once

#include "buffersizes.h"
#include "collectivesimulation.h"
#include "core/design/design.h"
#include "core/program/program.h"
#include "devicestreams.h"
#include "listpeaks.h"
#include "partsimulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace pipewright::test {

class DeviceSimulation {
public:
    static constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

    DeviceSimulation(const Program& program, const Design& design)
        : start(program.tasks.size(), never), end(program.tasks.size(), never), m_program(program), m_design(design),
          m_costs(design.costs), m_sizes(design), m_available(program.buffers.size(), 0),
          m_writersLeft(program.buffers.size(), 0), m_written(program.buffers.size(), 0),
          m_lanes(program.devices.size()), m_streams(program), m_collectives(program, design.costs)
    {
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            for (const BufferId b : program.writes(t)) {
                m_available[b] = never;
                ++m_writersLeft[b];
            }
        for (const Overlap& pair : design.schedule.overlaps)
            m_pairs[taskOf(pair.first)] = taskOf(pair.second);
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].kind == TaskKind::Transfer)
                m_waitingTransfers.insert(t);
        m_hostWires.resize(program.devices.size());
    }

    /// False on a deadlock.
    bool run()
    {
        for (Nanoseconds next = 0; next != never; next = nextEvent()) {
            m_now = next;
            // A bus is served when all that this moment makes ready is known.
            while (advanceDevices() || advanceTransfers() || advanceHostWires() || advanceCollectives() || serveABus())
                ;
        }
        return std::find(end.begin(), end.end(), never) == end.end();
    }

    std::vector<Nanoseconds> start, end; ///< per task; never: it has not run

    /// See listpeaks.h.
    ListPeaks peaksOf(std::size_t device, std::string& fault) const
    {
        return listPeaks(
            m_program, m_sizes, [this](TaskId t) { return m_pairs.contains(t); }, device, fault);
    }

    /// Without waiting for other transfers on the wire.
    Nanoseconds transferTime(int from, int to, Bytes bytes) const
    {
        return linkOf(from, to).latency + wireTime(from, to, bytes);
    }

private:
    struct Lane {
        std::size_t next = 0;       ///< instruction
        Nanoseconds freeFrom = 0;   ///< never: waits for the other device of a task
        Nanoseconds launch = never; ///< when the host has launched the next block
        TaskId pairIssued = none;   ///< the second of a pair, which runs already
    };
    struct HostWire { ///< of a device, one way
        Nanoseconds freeFrom = 0;
        std::vector<TaskId> queue; ///< first come, first served
    };

    struct Bus {
        Nanoseconds freeFrom = 0;
        std::set<std::pair<Nanoseconds, TaskId>> queue;
    };

    TaskId taskOf(const Block& block) const
    {
        for (TaskId t = 0; t < m_program.tasks.size(); ++t)
            if (m_program.tasks[t].kind == TaskKind::Compute && m_program.tasks[t].block() == block)
                return t;
        return none;
    }

    const LinkCosts& linkOf(int from, int to) const
    {
        const auto own = m_costs.linkOfPair.find({from, to});
        return own == m_costs.linkOfPair.end() ? m_costs.link : own->second;
    }
    Nanoseconds wireTime(int from, int to, Bytes bytes) const
    {
        const double rate = linkOf(from, to).bytesPerSecond;
        return rate > 0 && bytes > 0 ? std::llround(static_cast<double>(bytes) / rate * 1e9) : 0;
    }

    Nanoseconds blockTime(const Task& task) const
    {
        const StageCosts& stage = m_costs.stages[static_cast<std::size_t>(task.stage)];
        Nanoseconds time = 0;
        switch (task.op) {
        case Op::F: time = stage.forward; break;
        case Op::B: time = stage.backward; break;
        case Op::I: time = stage.inputGrad; break;
        case Op::W: time = stage.weightGrad; break;
        case Op::U: // with update blocks, or drawn replicas, the exchanges with copies are part of it
            return (sharesStates() ? (stage.update + m_program.replicas() - 1) / m_program.replicas() : stage.update)
                   + (m_program.versioned() || m_program.replicas() > 1 ? stage.reduceGradients + stage.gather : 0);
        case Op::R: time = stage.recompute; break;
        }
        if (!m_costs.microbatches.empty())
            time = std::llround(static_cast<double>(time)
                                * m_costs.microbatches[static_cast<std::size_t>(task.microbatch())].time);
        return time;
    }
    std::vector<BlockPart> partsOf(const Task& task) const
    {
        return scaledParts(m_costs.stages[static_cast<std::size_t>(task.stage)].parts[indexOf(task.op)],
                           blockTime(task));
    }
    Nanoseconds pairTime(TaskId first, TaskId second) const
    {
        const Task &one = m_program.tasks[first], &other = m_program.tasks[second];
        const auto has = [this](const Task& task) {
            return !m_costs.stages[static_cast<std::size_t>(task.stage)].parts[indexOf(task.op)].empty();
        };
        if (has(one) || has(other)) {
            const PartSequence* stated = nullptr;
            for (const PartOrder& order : m_design.schedule.partOrders)
                if (order.pair == Overlap{one.block(), other.block()})
                    stated = &order.sequence;
            return endOfParts({partsOf(one), partsOf(other)}, {}, stated);
        }
        return std::llround(static_cast<double>(blockTime(m_program.tasks[first]) + blockTime(m_program.tasks[second]))
                            * m_costs.overlapFactor);
    }
    Bytes carried(TaskId transfer) const
    {
        Bytes bytes = 0;
        for (const BufferId b : m_program.reads(transfer)) {
            const Bytes whole = m_sizes.sizeOf(m_program.buffers[b]);
            const Buffer& to = m_program.buffers[m_program.writes(transfer).front()];
            bytes += sharesStates() && (to.kind == BufferKind::Gradients || to.kind == BufferKind::KeptGradients)
                         ? m_sizes.gradientShare(to.replica, whole)
                         : whole;
        }
        return bytes;
    }
    /// Drawn replicas do.
    bool sharesStates() const { return m_program.zero.level > 0 && m_program.replicas() > 1; }
    /// A share of parameters: the device that it comes to must have room for it.
    bool isShare(TaskId transfer) const
    {
        return m_program.buffers[m_program.writes(transfer).front()].kind == BufferKind::GatheredParameters;
    }

    bool areThere(TaskId task) const
    {
        const auto reads = m_program.reads(task);
        return std::all_of(reads.begin(), reads.end(), [this](BufferId b) { return m_available[b] <= m_now; });
    }
    bool pinned(const Task& task) const
    {
        if (task.kind != TaskKind::Compute)
            return false;
        return std::any_of(m_design.schedule.pins.begin(), m_design.schedule.pins.end(),
                           [&](const Pin& pin) { return pin.block == task.block() && pin.earliestStart > m_now; });
    }

    /// 0 at the start of the step, where the device does not wait for the host.
    Nanoseconds gapBefore(TaskId t) const
    {
        const Task& task = m_program.tasks[t];
        const auto device = static_cast<std::size_t>(task.device);
        const bool launched = task.kind == TaskKind::Compute || task.kind == TaskKind::Update;
        const auto list = m_program.devices[device].instructions.begin();
        const bool isFirst =
            m_now == 0 && std::none_of(list, list + static_cast<long>(m_lanes[device].next), [](const auto& i) {
                return i.kind == InstructionKind::Compute || i.kind == InstructionKind::Update;
            });
        return isFirst || !launched || device >= m_costs.hostGaps.size()
                   ? 0
                   : m_costs.hostGaps[device].before[static_cast<std::size_t>(task.op)];
    }

    bool heldBack(TaskId t) const { return m_collectives.holdBack(m_program.tasks[t], end, m_now); }

    void begin(TaskId task, Nanoseconds duration)
    {
        start[task] = m_now;
        end[task] = m_now + duration;
        for (const BufferId b : m_program.writes(task)) { // gathered parameters have several writers
            m_written[b] = std::max(m_written[b], end[task]);
            if (--m_writersLeft[b] == 0)
                m_available[b] = m_written[b];
        }
    }

    bool advanceDevices()
    {
        bool moved = false;
        for (std::size_t d = 0; d < m_lanes.size(); ++d)
            while (m_lanes[d].freeFrom <= m_now && m_lanes[d].next < m_program.devices[d].instructions.size()
                   && issue(static_cast<int>(d), m_lanes[d]))
                moved = true;
        return moved;
    }

    /// False when the instruction cannot be issued yet.
    bool issue(int device, Lane& lane)
    {
        const Instruction& instruction = m_program.devices[static_cast<std::size_t>(device)].instructions[lane.next];
        const TaskId t = instruction.task;
        switch (instruction.kind) {
        case InstructionKind::Collective: break;
        case InstructionKind::Free:
            // Waits for an offload to the host, or a sum over copies, since its memory is reused.
            if (t != none && m_program.tasks[t].kind != TaskKind::Transfer && end[t] > m_now)
                return false;
            break;
        case InstructionKind::Gather:
        case InstructionKind::ReduceGradients:
            m_collectives.issue(t);
            if (m_costs.communication == Communication::Blocking) {
                advanceCollectives();
                lane.freeFrom = end[t];
            }
            break;
        case InstructionKind::Offload: m_hostWires[static_cast<std::size_t>(device)].first.queue.push_back(t); break;
        case InstructionKind::Reload: m_hostWires[static_cast<std::size_t>(device)].second.queue.push_back(t); break;
        case InstructionKind::Compute:
        case InstructionKind::Update: {
            if (lane.pairIssued == t) {
                lane.pairIssued = none;
                break;
            }
            const auto pair = m_pairs.find(t);
            const TaskId second = pair == m_pairs.end() ? none : pair->second;
            if (!areThere(t) || pinned(m_program.tasks[t]) || heldBack(t) || (second != none && heldBack(second))
                || (second != none && (!areThere(second) || pinned(m_program.tasks[second]))))
                return false;
            if (lane.launch == never)
                lane.launch = m_now + std::max(gapBefore(t), second != none ? gapBefore(second) : 0);
            if (lane.launch > m_now)
                return false;
            lane.launch = never;
            const TaskKind kind = m_program.tasks[t].kind;
            const bool takesTime = kind == TaskKind::Compute || kind == TaskKind::Update;
            begin(t, second != none ? pairTime(t, second) : takesTime ? blockTime(m_program.tasks[t]) : 0);
            if (second != none) {
                begin(second, pairTime(t, second));
                lane.pairIssued = second;
            }
            lane.freeFrom = end[t];
            break;
        }
        case InstructionKind::Send:
        case InstructionKind::Receive:
            if (m_costs.communication != Communication::Blocking) {
                (instruction.kind == InstructionKind::Send ? m_issued : m_received).insert(t);
                break;
            }
            meet(t, lane);
            break;
        case InstructionKind::Reduce:
            if (heldBack(t))
                return false;
            if (!m_program.tasks[t].joinsTwoDevices()) {
                begin(t, reduceTime(m_program.tasks[t]));
                lane.freeFrom = end[t];
            } else if (meet(t, lane)) {
                if (const auto passed = busesOfSum(m_program.tasks[t]); passed.empty())
                    sum(t);
                else
                    for (const auto& [bus, held] : passed)
                        m_buses[bus].queue.insert({m_now, t});
            }
            break;
        }
        ++lane.next;
        return true;
    }

    /// A device reaches a task that it runs together with another one; true when both have reached it.
    bool meet(TaskId task, Lane& lane)
    {
        lane.freeFrom = never;
        m_meeting[task].push_back(&lane);
        return m_meeting[task].size() == 2;
    }

    Nanoseconds reduceTime(const Task& task) const
    {
        if (task.kind == TaskKind::Reduce)
            return m_costs.reduce;
        if (!task.joinsTwoDevices())
            return 0;
        // Both directions at once; on a shared wire the return transfer begins when the first has left the wire.
        const Bytes bytes = gradientsOf(task, task.otherDevice()), returned = gradientsOf(task, task.device);
        const std::string &there = linkOf(task.device, task.otherDevice()).bus,
                          &back = linkOf(task.otherDevice(), task.device).bus;
        const Nanoseconds behind =
            !there.empty() && there == back ? wireTime(task.device, task.otherDevice(), bytes) : 0;
        return std::max(transferTime(task.device, task.otherDevice(), bytes),
                        behind + transferTime(task.otherDevice(), task.device, returned));
    }
    /// What a device of a sum over replicas gets: all, or where states are shared out what it goes on with.
    Bytes gradientsOf(const Task& task, int device) const
    {
        if (!sharesStates())
            return m_costs.stages[static_cast<std::size_t>(task.stage)].gradients;
        for (const BufferId b : m_program.writes(static_cast<TaskId>(&task - m_program.tasks.data())))
            if (m_program.buffers[b].kind == BufferKind::ReduceInbox && m_program.buffers[b].device == device)
                return m_program.buffers[b].bytes;
        return 0;
    }

    /// The wires that a sum of gradients uses, and for how long. A shared parameter's sum takes the time that the costs
    /// state: it is on no wire for longer.
    std::map<std::string, Nanoseconds> busesOfSum(const Task& task) const
    {
        std::map<std::string, Nanoseconds> buses;
        const bool shared = task.kind == TaskKind::Reduce;
        if ((!shared && task.kind != TaskKind::ReplicaSum) || !task.joinsTwoDevices())
            return buses;
        Bytes bytes = 0;
        for (const SharedParameter& parameter : m_design.dataflow.shared)
            if (shared && parameter.rootStage == task.stage && parameter.otherStage == task.otherStage())
                bytes = parameter.bytes;
        for (const auto& [from, to] :
             {std::pair{task.device, task.otherDevice()}, std::pair{task.otherDevice(), task.device}})
            if (const std::string& bus = linkOf(from, to).bus; !bus.empty())
                buses[bus] += wireTime(from, to, shared ? bytes : gradientsOf(task, to));
        for (auto& [bus, held] : buses)
            held = shared ? std::min(held, m_costs.reduce) : held;
        return buses;
    }

    void sum(TaskId t)
    {
        begin(t, reduceTime(m_program.tasks[t]));
        for (Lane* each : m_meeting[t])
            each->freeFrom = end[t];
    }

    bool canGo(TaskId t) const
    {
        if (m_costs.communication == Communication::Blocking)
            return m_meeting.contains(t) && m_meeting.at(t).size() == 2;
        const bool streams = m_costs.communication == Communication::OneStream;
        // In a stated order a device may list a send behind blocks that it does not need, but not a sum behind others.
        const bool early = streams && !m_design.schedule.transferOrder.empty() && m_program.tasks[t].op != Op::U;
        return areThere(t) && (!isShare(t) || m_received.contains(t)) && (m_issued.contains(t) || early)
               && (!streams || m_streams.comeTo(t, m_program.tasks[t], m_now));
    }

    bool advanceTransfers()
    {
        bool moved = false;
        for (auto at = m_waitingTransfers.begin(); at != m_waitingTransfers.end();) {
            const TaskId t = *at++;
            if (!canGo(t))
                continue;
            m_waitingTransfers.erase(t);
            moved = true;
            const Task& task = m_program.tasks[t];
            m_streams.take(task);
            if (const std::string& bus = linkOf(task.device, task.destination()).bus; bus.empty())
                carry(t);
            else
                m_buses[bus].queue.insert({m_now, t});
        }
        return moved;
    }

    bool advanceHostWires()
    {
        bool moved = false;
        const auto serve = [&](HostWire& wire) {
            if (wire.queue.empty() || wire.freeFrom > m_now || !areThere(wire.queue.front()))
                return;
            const TaskId t = wire.queue.front();
            wire.queue.erase(wire.queue.begin());
            const LinkCosts& link = *m_costs.hostLink;
            const Bytes bytes = carried(t);
            begin(t, link.latency
                         + (link.bytesPerSecond > 0 && bytes > 0
                                ? std::llround(static_cast<double>(bytes) / link.bytesPerSecond * 1e9)
                                : 0));
            wire.freeFrom = end[t];
            moved = true;
        };
        for (auto& [out, in] : m_hostWires) {
            serve(out);
            serve(in);
        }
        return moved;
    }

    bool advanceCollectives()
    {
        return m_collectives.advance(m_now, m_costs.communication == Communication::OneStream ? &m_streams : nullptr,
                                     end, [this](TaskId t) { begin(t, m_collectives.timeOf(t)); });
    }

    bool serveABus()
    {
        for (auto& [name, bus] : m_buses) {
            if (bus.queue.empty() || bus.freeFrom > m_now)
                continue;
            const std::pair<Nanoseconds, TaskId> first = *bus.queue.begin();
            const TaskId t = first.second;
            const Task& task = m_program.tasks[t];
            if (task.kind != TaskKind::Transfer) { // a sum needs all its wires at once
                const auto passed = busesOfSum(task);
                if (std::any_of(passed.begin(), passed.end(), [&](const auto& each) {
                        const Bus& other = m_buses[each.first];
                        return *other.queue.begin() != first || other.freeFrom > m_now;
                    }))
                    continue;
                for (const auto& [name, held] : passed) {
                    m_buses[name].queue.erase(first);
                    m_buses[name].freeFrom = m_now + held;
                }
                sum(t);
                return true;
            }
            bus.queue.erase(bus.queue.begin());
            bus.freeFrom = m_now + wireTime(task.device, task.destination(), carried(t));
            carry(t);
            return true;
        }
        return false;
    }

    void carry(TaskId t)
    {
        const Task& task = m_program.tasks[t];
        begin(t, transferTime(task.device, task.destination(), carried(t)));
        for (Lane* lane : m_meeting[t])
            lane->freeFrom = end[t];
        m_streams.end(task, end[t]);
    }

    /// The time of the next event; never when nothing is in flight.
    Nanoseconds nextEvent() const
    {
        Nanoseconds next = never;
        const auto see = [&](Nanoseconds time) {
            if (time > m_now)
                next = std::min(next, time);
        };
        for (const Lane& lane : m_lanes) {
            see(lane.freeFrom);
            see(lane.launch);
        }
        for (const Nanoseconds time : m_available)
            see(time);
        m_streams.eachEnd(see);
        m_collectives.eachEnd(see);
        for (const auto& [name, bus] : m_buses)
            see(bus.freeFrom);
        for (const Pin& pin : m_design.schedule.pins)
            see(pin.earliestStart);
        return next;
    }

    const Program& m_program;
    const Design& m_design;
    const Costs& m_costs;
    BufferSizes m_sizes;
    Nanoseconds m_now = 0;
    std::vector<Nanoseconds> m_available; ///< per buffer
    std::vector<int> m_writersLeft;       ///< per buffer: tasks that have not begun
    std::vector<Nanoseconds> m_written;   ///< per buffer: by those that have
    std::vector<Lane> m_lanes;
    std::map<TaskId, TaskId> m_pairs;               ///< first to second
    std::map<TaskId, std::vector<Lane*>> m_meeting; ///< devices that have reached the task
    std::set<TaskId> m_waitingTransfers, m_issued, m_received;
    DeviceStreams m_streams;
    CollectiveSimulation m_collectives;
    std::map<std::string, Bus> m_buses;
    std::vector<std::pair<HostWire, HostWire>> m_hostWires; ///< per device, to the host and from it
};

} // namespace pipewright::test
