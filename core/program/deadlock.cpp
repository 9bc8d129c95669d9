// SPDX-License-Identifier: GPL-3.0-or-later
// Deadlock check: Kahn's topological sort of the tasks under the order in which devices issue them and channels carry
// them. Tasks that the sort does not reach contain a cycle; breadth-first search finds a short one to report.
// O(tasks + instructions), and O(cycle x tasks) more for the report.
#include "core/program/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace pipewright {

namespace {

/// One node per task, an edge for "must have ended before", in compressed rows.
class EventGraph {
public:
    explicit EventGraph(std::size_t nodes) : m_begin(nodes + 1, 0) {}

    void add(TaskId before, TaskId after)
    {
        if (before != after)
            m_edges.emplace_back(before, after);
    }

    void build()
    {
        for (const auto& edge : m_edges)
            ++m_begin[edge.first + 1];
        for (std::size_t i = 1; i < m_begin.size(); ++i)
            m_begin[i] += m_begin[i - 1];
        m_next.resize(m_edges.size());
        std::vector<std::uint32_t> position(m_begin.begin(), m_begin.end() - 1);
        for (const auto& edge : m_edges)
            m_next[position[edge.first]++] = edge.second;
    }

    std::span<const TaskId> after(TaskId t) const
    {
        return {m_next.data() + m_begin[t], m_next.data() + m_begin[t + 1]};
    }
    std::size_t size() const { return m_begin.size() - 1; }

private:
    std::vector<std::pair<TaskId, TaskId>> m_edges;
    std::vector<std::uint32_t> m_begin;
    std::vector<TaskId> m_next;
};

/// Adds what one device's list demands. `barriers` are the events that everything issued from here on must
/// come after: the last computation and the sends that a Free has waited for since.
void addDevice(EventGraph& graph, const Program& program, int device, Communication communication,
               std::map<std::pair<int, int>, TaskId>& lastSend, std::map<std::pair<int, int>, TaskId>& lastReceive)
{
    std::vector<TaskId> barriers;
    TaskId lastOnStream = none;
    for (const Instruction& instruction : program.devices[device].instructions) {
        const TaskId t = instruction.task;
        if (t == none)
            continue;
        if (instruction.kind == InstructionKind::Free) {
            barriers.push_back(t);
            continue;
        }
        for (const TaskId before : barriers)
            graph.add(before, t);
        const bool transfer = instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Receive;
        if (transfer) {
            const Task& task = program.tasks[t];
            auto& last = instruction.kind == InstructionKind::Send ? lastSend : lastReceive;
            const auto [entry, first] = last.try_emplace({task.device, task.destination()}, t);
            if (!first)
                graph.add(std::exchange(entry->second, t), t);
            if (const TaskId before = std::exchange(lastOnStream, t);
                communication == Communication::OneStream && before != none)
                graph.add(before, t);
        }
        if (!transfer || communication == Communication::Blocking)
            barriers.assign(1, t);
    }
}

EventGraph eventsOf(const Program& program, Communication communication)
{
    EventGraph graph(program.tasks.size());
    std::map<std::pair<int, int>, TaskId> lastSend, lastReceive; // per directed pair of devices
    for (int device = 0; device < static_cast<int>(program.devices.size()); ++device)
        addDevice(graph, program, device, communication, lastSend, lastReceive);
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.afterData[t] != none)
            graph.add(program.afterData[t], t);
    for (const auto& extra : program.extraDependencies)
        if (extra.after != none)
            graph.add(extra.after, extra.task);
    graph.build();
    return graph;
}

/// The nodes that no topological order reaches.
std::vector<std::uint8_t> stuckNodes(const EventGraph& graph)
{
    std::vector<std::uint32_t> inputs(graph.size(), 0);
    for (TaskId t = 0; t < graph.size(); ++t)
        for (const TaskId next : graph.after(t))
            ++inputs[next];
    std::vector<TaskId> ready;
    for (TaskId t = 0; t < graph.size(); ++t)
        if (inputs[t] == 0)
            ready.push_back(t);
    while (!ready.empty()) {
        const TaskId t = ready.back();
        ready.pop_back();
        for (const TaskId next : graph.after(t))
            if (--inputs[next] == 0)
                ready.push_back(next);
    }
    std::vector<std::uint8_t> stuck(graph.size());
    for (TaskId t = 0; t < graph.size(); ++t)
        stuck[t] = inputs[t] > 0;
    return stuck;
}

/// The shortest cycle through `origin`, in edge order; empty when there is none.
std::vector<TaskId> cycleThrough(const EventGraph& graph, const std::vector<std::uint8_t>& stuck, TaskId origin)
{
    std::vector<TaskId> from(graph.size(), none), queue{origin};
    for (std::size_t head = 0; head < queue.size(); ++head)
        for (const TaskId next : graph.after(queue[head])) {
            if (next == origin) {
                std::vector<TaskId> cycle;
                for (TaskId t = queue[head]; t != origin; t = from[t])
                    cycle.push_back(t);
                cycle.push_back(origin);
                std::reverse(cycle.begin(), cycle.end());
                return cycle;
            }
            if (stuck[next] && from[next] == none) {
                from[next] = queue[head];
                queue.push_back(next);
            }
        }
    return {};
}

std::string_view remedyFor(Communication communication)
{
    switch (communication) {
    case Communication::Overlapped: return "issue the transfers of each pair of devices in the same order on both";
    case Communication::OneStream:
        return "on each device let the transfer that others need go before the one that needs them, or let transfers "
               "overlap with each other";
    case Communication::Blocking:
        return "let transfers overlap with compute, or issue the send before the receive on one of the devices";
    }
    return {};
}

} // namespace

bool issuesInTaskOrder(const Program& program)
{
    for (const Program::Device& device : program.devices) {
        TaskId issued = 0, waited = 0; // the latest, and the latest that a Free waits for
        for (const Instruction& instruction : device.instructions) {
            const TaskId t = instruction.task;
            if (t == none)
                continue;
            if (instruction.kind == InstructionKind::Free) {
                waited = std::max(waited, t);
            } else if (t < issued || t < waited) {
                return false;
            } else {
                issued = t;
            }
        }
    }
    return waitsInTaskOrder(program);
}

bool waitsInTaskOrder(const Program& program)
{
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.afterData[t] != none && program.afterData[t] >= t)
            return false;
    return std::all_of(program.extraDependencies.begin(), program.extraDependencies.end(),
                       [](const auto& extra) { return extra.after == none || extra.after < extra.task; });
}

Diagnostics checkDeadlock(const Program& program, Communication communication)
{
    if (issuesInTaskOrder(program))
        return {}; // every edge of the graph leads to a later task
    const EventGraph graph = eventsOf(program, communication);
    const std::vector<std::uint8_t> stuck = stuckNodes(graph);
    const auto first = std::find(stuck.begin(), stuck.end(), 1);
    if (first == stuck.end())
        return {};
    // Nodes behind a cycle are stuck as well, so look for one that lies on it, then for a shorter one
    // through any of its nodes.
    std::vector<TaskId> cycle;
    for (auto node = first; cycle.empty() && node != stuck.end(); ++node)
        if (*node)
            cycle = cycleThrough(graph, stuck, static_cast<TaskId>(node - stuck.begin()));
    const std::vector<TaskId> candidates = cycle;
    for (const TaskId node : candidates)
        if (std::vector<TaskId> other = cycleThrough(graph, stuck, node); other.size() < cycle.size())
            cycle = std::move(other);

    const auto name = [&](TaskId t) {
        const Task& task = program.tasks[t];
        return task.kind == TaskKind::Transfer ? program.label(t)
                                               : fmt::format("{} on device {}", program.label(t), task.device);
    };
    std::string story = name(cycle.front());
    for (std::size_t i = cycle.size(); i-- > 0;)
        story += fmt::format("{} {}", i + 1 == cycle.size() ? " waits for" : ", which waits for", name(cycle[i]));
    return {{Severity::Error, fmt::format("device {}", program.tasks[cycle.front()].device),
             fmt::format("the communication waits in a circle: {}", story), std::string(remedyFor(communication))}};
}

} // namespace pipewright
