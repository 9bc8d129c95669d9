// SPDX-License-Identifier: GPL-3.0-or-later
// Discrete-event simulation: a task runs as soon as all its inputs have ended; a transfer on a bus then joins the queue
// of ready transfers. When no other task can run, the transfer that has been ready longest gets its bus: no transfer
// can become ready earlier any more, since all later tasks end later.
#include "core/predict/busqueues.h"

#include "core/predict/evaluator.h"
#include "core/program/replicasums.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace pipewright {

BusQueues::BusQueues(const Program& program)
    : m_program(program), m_uses(program.tasks.size()), m_inputs(program.tasks.size(), 0),
      m_followerBegin(program.tasks.size() + 1, 0)
{
    std::map<std::string, std::uint32_t, std::less<>> numbers;
    for (const auto& [link, bus] : program.busOfLink)
        numbers.try_emplace(bus, static_cast<std::uint32_t>(numbers.size()));
    m_buses = static_cast<std::uint32_t>(numbers.size());
    const auto count = static_cast<TaskId>(program.tasks.size());
    const auto eachInput = [&](auto see) {
        for (TaskId t = 0; t < count; ++t)
            for (const TaskId input : {program.afterOnDevice[t], program.afterData[t]})
                if (input != none)
                    see(input, t);
        for (const Program::ExtraDependency& extra : program.extraDependencies)
            if (extra.after != none)
                see(extra.after, extra.task);
    };
    eachInput([&](TaskId input, TaskId task) {
        ++m_followerBegin[input + 1];
        ++m_inputs[task];
    });
    std::partial_sum(m_followerBegin.begin(), m_followerBegin.end(), m_followerBegin.begin());
    m_followers.resize(m_followerBegin.back());
    std::vector<std::uint32_t> next(m_followerBegin.begin(), m_followerBegin.end() - 1);
    eachInput([&](TaskId input, TaskId task) { m_followers[next[input]++] = task; });
    const auto numberOf = [&](std::string_view bus) { return bus.empty() ? noBus : numbers.find(bus)->second; };
    for (TaskId t = 0; t < count; ++t) {
        const auto [there, back] = busesOf(program, program.tasks[t]);
        m_uses[t] = {numberOf(there), back == there ? noBus : numberOf(back)};
    }
}

void BusQueues::setCosts(const Costs& costs, const Evaluator& evaluator)
{
    for (TaskId t = 0; t < m_uses.size(); ++t) {
        const BusTimes times = busTimes(m_program, t, evaluator.duration(t), costs);
        m_uses[t].held = times.there;
        m_uses[t].heldBack = times.back;
    }
}

void BusQueues::evaluate(const Evaluator& evaluator, Timeline& timeline) const
{
    using Ready = std::pair<Nanoseconds, TaskId>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> queue;
    std::vector<Nanoseconds> freeFrom(m_buses, 0);
    std::vector<std::uint32_t> missing = m_inputs;
    std::vector<TaskId> runnable;
    for (TaskId t = 0; t < missing.size(); ++t)
        if (missing[t] == 0)
            runnable.push_back(t);
    const auto run = [&](TaskId task, Nanoseconds start) {
        timeline.start[task] = start;
        timeline.end[task] = start + evaluator.duration(task);
        for (std::uint32_t f = m_followerBegin[task]; f < m_followerBegin[task + 1]; ++f)
            if (--missing[m_followers[f]] == 0)
                runnable.push_back(m_followers[f]);
    };
    while (true) {
        while (!runnable.empty()) {
            const TaskId task = runnable.back();
            runnable.pop_back();
            const Nanoseconds ready = evaluator.ready(task, timeline);
            if (m_uses[task].bus == noBus && m_uses[task].back == noBus)
                run(task, evaluator.startOf(task, ready));
            else
                queue.emplace(ready, task);
        }
        if (queue.empty())
            return;
        const auto [ready, task] = queue.top();
        queue.pop();
        const Use& use = m_uses[task];
        Nanoseconds start = ready;
        for (const std::uint32_t bus : {use.bus, use.back})
            if (bus != noBus)
                start = std::max(start, freeFrom[bus]);
        if (use.bus != noBus)
            freeFrom[use.bus] = start + use.held;
        if (use.back != noBus)
            freeFrom[use.back] = start + use.heldBack;
        run(task, start);
    }
}

BusesOfTask busesOf(const Program& program, const Task& task)
{
    const auto between = [&](int from, int to) -> std::string_view {
        const auto bus = program.busOfLink.find({from, to});
        return bus == program.busOfLink.end() ? std::string_view{} : bus->second;
    };
    if (!task.joinsTwoDevices())
        return {}; // what moves anything else has a dedicated wire
    return {between(task.device, task.otherDevice()),
            isReduction(task.kind) ? between(task.otherDevice(), task.device) : std::string_view{}};
}

BusTimes busTimes(const Program& program, TaskId id, Nanoseconds duration, const Costs& costs)
{
    const Task& task = program.tasks[id];
    const BusesOfTask buses = busesOf(program, task);
    if (!buses.any())
        return {};
    const LinkCosts& there = costs.linkBetween(task.device, task.otherDevice());
    if (task.kind == TaskKind::Transfer)
        return {duration - there.latency, 0};
    const LinkCosts& back = costs.linkBetween(task.otherDevice(), task.device);
    ExchangedGradients bytes;
    if (task.kind == TaskKind::Reduce) // the same size in both directions
        bytes.toRoot = bytes.toOther = program.buffers[program.writes(id).front()].bytes;
    else
        bytes = exchangedGradients(program, costs.stages[task.stage].gradients, pairOf(program, task));
    // A shared parameter's reduction has its own time, which may be measured: it occupies no bus for longer than that.
    const auto held = [&](Nanoseconds wire) { return task.kind == TaskKind::Reduce ? std::min(wire, duration) : wire; };
    if (buses.there == buses.back)
        return {held(there.wireTime(bytes.toOther) + back.wireTime(bytes.toRoot)), 0};
    return {buses.there.empty() ? 0 : held(there.wireTime(bytes.toOther)),
            buses.back.empty() ? 0 : held(back.wireTime(bytes.toRoot))};
}

std::vector<TaskId> passedBefore(const Program& program, const Timeline& timeline)
{
    if (program.busOfLink.empty())
        return {};
    std::map<std::string_view, std::vector<TaskId>> passed;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (timeline.start[t] != notRun) {
            const auto [there, back] = busesOf(program, program.tasks[t]);
            if (!there.empty())
                passed[there].push_back(t);
            if (!back.empty() && back != there)
                passed[back].push_back(t);
        }
    std::vector<TaskId> before(program.tasks.size(), none);
    for (auto& [bus, tasks] : passed) {
        std::stable_sort(tasks.begin(), tasks.end(),
                         [&](TaskId a, TaskId b) { return timeline.start[a] < timeline.start[b]; });
        // Of several that start at the same time, all but the last occupy the bus for no time, so none waits for
        // another.
        TaskId earlier = none;
        for (std::size_t i = 1; i < tasks.size(); ++i) {
            if (timeline.start[tasks[i]] > timeline.start[tasks[i - 1]])
                earlier = tasks[i - 1];
            TaskId& known = before[tasks[i]]; // of a sum that passes two buses the later one
            if (known == none || (earlier != none && timeline.start[earlier] > timeline.start[known]))
                known = earlier;
        }
    }
    return before;
}

std::string busNames(const Program& program)
{
    std::set<std::string> names;
    for (const auto& [link, bus] : program.busOfLink)
        names.insert(bus);
    std::string text;
    for (const std::string& name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

std::string_view busDiscipline()
{
    return "first ready, first served: each transfer holds the bus for its bytes, not for its latency";
}

} // namespace pipewright
