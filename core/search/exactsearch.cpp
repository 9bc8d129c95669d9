// SPDX-License-Identifier: GPL-3.0-or-later
// Depth-first branch and bound over semi-active schedules: tasks are appended by start time. A node is cut when the
// work left on a device, or the longest path from a task to the device's last block, cannot beat the incumbent.
// O(tasks) per node, exponentially many nodes in the worst case.
#include "core/search/exactsearch.h"

#include "core/search/symmetricpredecessors.h"

#include <algorithm>

namespace pipewright {

ExactSearch::ExactSearch(const SearchModel& model, const SearchOptions& options, Incumbent& incumbent)
    : m_model(model), m_options(options), m_incumbent(incumbent), m_inputs(model.tasks.size()),
      m_predecessor(model.tasks.size(), -1), m_end(model.tasks.size(), 0), m_free(model.devices, 0),
      m_first(m_free.size(), -1), m_left(m_free.size(), 0), m_placed(model.tasks.size(), 0), m_live(m_free.size(), 0),
      m_unusedSpace(model.capacity), m_lanes(m_free.size())
{
    for (std::size_t t = 0; t < model.tasks.size(); ++t) {
        const SearchTask& task = model.tasks[t];
        m_left[task.device] += task.duration;
        for (const std::int32_t input : {task.input, task.local, task.lockedAfter})
            if (input >= 0)
                m_inputs[t].push_back(input);
        for (const ExtraInput& extra : model.extrasOf(static_cast<std::int32_t>(t)))
            m_inputs[t].push_back(extra.input);
    }
    findPaths();
    if (std::vector<std::int32_t> predecessors = symmetricPredecessors(model); !predecessors.empty())
        m_predecessor = std::move(predecessors);
}

/// Longest path from every task to each device: relaxation (Bellman and Ford) until nothing changes.
void ExactSearch::findPaths()
{
    m_path.assign(m_free.size(), std::vector<Nanoseconds>(m_model.tasks.size(), -1));
    for (std::size_t d = 0; d < m_path.size(); ++d) {
        std::vector<Nanoseconds>& path = m_path[d];
        for (std::size_t t = 0; t < path.size(); ++t)
            if (static_cast<std::size_t>(m_model.tasks[t].device) == d)
                path[t] = m_model.tasks[t].duration;
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t t = 0; t < path.size(); ++t) {
                const SearchTask& task = m_model.tasks[t];
                const auto lengthen = [&](std::int32_t input, Nanoseconds delay) {
                    if (input < 0 || path[t] < 0)
                        return;
                    Nanoseconds& before = path[input];
                    const Nanoseconds longer = m_model.tasks[input].duration + delay + path[t];
                    if (longer > before) {
                        before = longer;
                        changed = true;
                    }
                };
                lengthen(task.input, task.delay);
                lengthen(task.local, 0);
                for (const ExtraInput& extra : m_model.extrasOf(static_cast<std::int32_t>(t)))
                    lengthen(extra.input, extra.delay);
            }
        }
    }
}

bool ExactSearch::run(std::int64_t nodes, const std::function<bool()>& stop)
{
    m_nodes = nodes;
    m_stop = stop;
    m_cut = m_loose = false;
    branch(0, 0);
    if (m_loose && !m_cut && std::ranges::any_of(m_predecessor, [](std::int32_t before) { return before >= 0; })) {
        std::ranges::fill(m_predecessor, -1);
        branch(0, 0);
    }
    return !m_cut;
}

Nanoseconds ExactSearch::startOf(std::int32_t id) const
{
    for (const std::int32_t input : m_inputs[id])
        if (m_placed[input] == 0)
            return -1;
    const SearchTask& task = m_model.tasks[id];
    Nanoseconds start = std::max(m_free[task.device], task.earliest);
    if (task.input >= 0)
        start = std::max(start, m_end[task.input] + task.delay);
    if (task.local >= 0)
        start = std::max(start, m_end[task.local]);
    for (const ExtraInput& extra : m_model.extrasOf(id))
        start = std::max(start, m_end[extra.input] + extra.delay);
    return start;
}

/// True when no schedule that continues with this task at this time can beat the incumbent.
bool ExactSearch::hopeless(std::int32_t id, Nanoseconds start) const
{
    const Nanoseconds best = m_incumbent.best();
    const bool span = m_options.objective == SearchObjective::Span;
    const Nanoseconds begin = m_begin < 0 ? start : m_begin; // start of the step, as blocks are placed by start time
    const std::size_t own = m_model.tasks[id].device;
    for (std::size_t d = 0; d < m_free.size(); ++d) {
        const Nanoseconds first = !span ? begin : d == own && m_first[d] < 0 ? start : m_first[d];
        if (first < 0)
            continue; // no block has started: only its work counts, which is the same in any order
        const Nanoseconds from =
            (span ? first : begin - m_model.updates[d]) + m_model.lead(m_options.objective, static_cast<int>(d));
        const Nanoseconds busy = (d == own ? start : m_free[d]) + m_left[d];
        const Nanoseconds way = m_path[d][id];
        if (busy - from >= best || (way >= 0 && start + way - from >= best))
            return true;
    }
    return false;
}

void ExactSearch::branch(std::size_t placed, Nanoseconds from)
{
    if (placed == m_model.tasks.size()) {
        Nanoseconds value = 0;
        for (std::size_t d = 0; d < m_free.size(); ++d)
            if (!m_lanes[d].empty())
                value = std::max(value, (m_options.objective == SearchObjective::Span
                                             ? m_free[d] - m_first[d]
                                             : m_free[d] - m_begin + m_model.updates[d])
                                            - m_model.lead(m_options.objective, static_cast<int>(d)));
        const Offered offered = m_incumbent.offer(m_lanes, value, "every order", m_unusedSpace);
        m_loose = m_loose || offered == Offered::Refused || (offered == Offered::Longer && m_model.transfersWait);
        return;
    }
    if (--m_nodes < 0 || (m_nodes % 256 == 0 && m_stop())) {
        m_cut = true;
        return;
    }
    std::vector<std::pair<Nanoseconds, std::int32_t>> choices;
    for (std::size_t t = 0; t < m_model.tasks.size(); ++t)
        if (m_placed[t] == 0 && (m_predecessor[t] < 0 || m_placed[m_predecessor[t]] != 0))
            if (const Nanoseconds start = startOf(static_cast<std::int32_t>(t)); start >= from)
                choices.emplace_back(start, static_cast<std::int32_t>(t));
    std::sort(choices.begin(), choices.end());
    for (const auto& [start, id] : choices) {
        const SearchTask& task = m_model.tasks[id];
        if (m_live[task.device] + task.taken + task.passing > m_model.capacity[task.device] || hopeless(id, start))
            continue;
        const Nanoseconds freeBefore = m_free[task.device], firstBefore = m_first[task.device];
        m_begin = placed == 0 ? start : m_begin;
        m_placed[id] = 1;
        m_end[id] = m_free[task.device] = start + task.duration;
        m_first[task.device] = firstBefore < 0 ? start : firstBefore;
        m_left[task.device] -= task.duration;
        m_live[task.device] += task.taken - task.freed;
        m_lanes[task.device].push_back(id);
        branch(placed + 1, start);
        m_lanes[task.device].pop_back();
        m_live[task.device] -= task.taken - task.freed;
        m_left[task.device] += task.duration;
        m_first[task.device] = firstBefore;
        m_free[task.device] = freeBefore;
        m_placed[id] = 0;
        m_begin = placed == 0 ? -1 : m_begin;
        if (m_cut)
            return;
    }
}

} // namespace pipewright
