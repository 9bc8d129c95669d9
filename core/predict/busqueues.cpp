// SPDX-License-Identifier: GPL-3.0-or-later
// Discrete-event simulation: tasks run as soon as all that they wait for has ended; a transfer on a bus then joins the
// queue of those that are ready. When nothing else can run, the one that has been ready longest passes its bus: nobody
// can become ready before it any more, since whatever follows ends later.
#include "core/predict/busqueues.h"

#include "core/predict/evaluator.h"

#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace pipewright {

BusQueues::BusQueues(const Program& program)
    : m_program(program), m_busOf(program.tasks.size(), noBus), m_held(program.tasks.size(), 0),
      m_inputs(program.tasks.size(), 0), m_followerBegin(program.tasks.size() + 1, 0)
{
    std::map<std::string, std::uint32_t> numbers;
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
    for (TaskId t = 0; t < count; ++t)
        if (const Task& task = program.tasks[t]; task.kind == TaskKind::Transfer)
            if (const auto bus = program.busOfLink.find({task.device, task.peer}); bus != program.busOfLink.end())
                m_busOf[t] = numbers[bus->second];
}

void BusQueues::setCosts(const Costs& costs, const Evaluator& evaluator)
{
    for (TaskId t = 0; t < m_busOf.size(); ++t)
        if (m_busOf[t] != noBus) {
            const Task& task = m_program.tasks[t];
            m_held[t] = evaluator.duration(t) - costs.linkBetween(task.device, task.peer).latency;
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
            if (m_busOf[task] == noBus)
                run(task, evaluator.startOf(task, ready));
            else
                queue.emplace(ready, task);
        }
        if (queue.empty())
            return;
        const auto [ready, task] = queue.top();
        queue.pop();
        Nanoseconds& free = freeFrom[m_busOf[task]];
        const Nanoseconds start = std::max(ready, free);
        free = start + m_held[task];
        run(task, start);
    }
}

std::vector<TaskId> passedBefore(const Program& program, const Timeline& timeline)
{
    if (program.busOfLink.empty())
        return {};
    std::map<std::string_view, std::vector<TaskId>> passed;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (const Task& task = program.tasks[t]; task.kind == TaskKind::Transfer && timeline.start[t] != notRun)
            if (const auto bus = program.busOfLink.find({task.device, task.peer}); bus != program.busOfLink.end())
                passed[bus->second].push_back(t);
    std::vector<TaskId> before(program.tasks.size(), none);
    for (auto& [bus, tasks] : passed) {
        std::stable_sort(tasks.begin(), tasks.end(),
                         [&](TaskId a, TaskId b) { return timeline.start[a] < timeline.start[b]; });
        // Of those that start together all but the last hold the bus for no time: none of them waits for another.
        TaskId earlier = none;
        for (std::size_t i = 1; i < tasks.size(); ++i) {
            if (timeline.start[tasks[i]] > timeline.start[tasks[i - 1]])
                earlier = tasks[i - 1];
            before[tasks[i]] = earlier;
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
