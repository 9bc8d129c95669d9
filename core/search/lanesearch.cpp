// SPDX-License-Identifier: GPL-3.0-or-later
// Late-acceptance hill climbing (Burke and Bykov, 2017) with a history of 150 costs. A move takes one block, three
// times in four a critical one, up to 12 places along its lane. O(tasks) per move.
#include "core/search/lanesearch.h"

#include <algorithm>
#include <array>

namespace pipewright {

LaneSearch::LaneSearch(const SearchModel& model, SearchObjective objective)
    : m_model(model), m_objective(objective), m_times(model), m_position(model.tasks.size())
{
}

bool LaneSearch::mayPass(std::int32_t earlier, std::int32_t later) const
{
    const SearchTask &a = m_model.tasks[earlier], &b = m_model.tasks[later];
    return b.local != earlier && b.lockedAfter != earlier
           && b.input != earlier
           // Swapping equal passes of a stage changes nothing.
           && (a.stage != b.stage || a.op != b.op || a.duration != b.duration || a.lockedAfter >= 0
               || b.lockedAfter >= 0);
}

/// A critical path: from the task that ends last back to a predecessor, on the device or by data, that ends when the
/// task starts, and so on.
void LaneSearch::findCritical(const Lanes& lanes)
{
    m_critical.clear();
    const std::vector<Nanoseconds>& start = m_times.starts();
    const auto endOf = [&](std::int32_t id) { return start[id] + m_model.tasks[id].duration; };
    std::int32_t at = -1;
    Nanoseconds worst = -1;
    for (std::size_t d = 0; d < lanes.size(); ++d) {
        if (lanes[d].empty())
            continue;
        for (std::size_t i = 0; i < lanes[d].size(); ++i)
            m_position[lanes[d][i]] = static_cast<std::int32_t>(i);
        const Nanoseconds own =
            endOf(lanes[d].back()) - (m_objective == SearchObjective::Span ? start[lanes[d].front()] : 0);
        if (own > worst) {
            worst = own;
            at = lanes[d].back();
        }
    }
    while (at >= 0) {
        m_critical.push_back(at);
        const SearchTask& task = m_model.tasks[at];
        const Nanoseconds begin = start[at];
        const std::int32_t position = m_position[at];
        std::int32_t before = -1;
        if (task.input >= 0 && endOf(task.input) + task.delay == begin)
            before = task.input;
        if (position > 0) {
            const std::int32_t neighbour = lanes[task.device][position - 1];
            if (endOf(neighbour) == begin && (before < 0 || m_critical.size() % 2 == 0))
                before = neighbour;
        }
        at = before;
    }
}

Nanoseconds LaneSearch::improve(Lanes& lanes, int changes, std::mt19937_64& random, const std::function<bool()>& stop)
{
    const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
    const auto cost = [&](const Lanes& current, Nanoseconds& value) {
        Nanoseconds sum = 0;
        value = m_times.value(current, m_objective, &sum);
        return static_cast<double>(value) + 0.2 * static_cast<double>(sum) / static_cast<double>(m_model.devices);
    };
    if (!m_times.run(lanes))
        return SearchModel::noCapacity;
    Nanoseconds value = 0;
    double current = cost(lanes, value), bestCost = current;
    Lanes best = lanes;
    Nanoseconds bestValue = value;
    std::array<double, 150> history;
    history.fill(current);
    findCritical(lanes);
    std::vector<std::int32_t> before;
    std::int64_t asked = m_times.work();
    for (int change = 0; change < changes; ++change) {
        if (m_times.work() - asked >= tasksBetweenStops) {
            asked = m_times.work();
            if (stop())
                break;
        }
        // The block to move: mostly a critical one.
        std::size_t device = 0, from = 0;
        if (!m_critical.empty() && below(4) != 0) {
            const std::int32_t task = m_critical[below(m_critical.size())];
            device = static_cast<std::size_t>(m_model.tasks[task].device);
            from = static_cast<std::size_t>(m_position[task]);
        } else {
            device = below(lanes.size());
            if (lanes[device].empty())
                continue;
            from = below(lanes[device].size());
        }
        std::vector<std::int32_t>& lane = lanes[device];
        const bool earlier = below(2) == 0;
        const std::size_t reach = 1 + below(below(4) == 0 ? 12 : 4);
        std::size_t to = from;
        while (to != (earlier ? 0 : lane.size() - 1) && (to > from ? to - from : from - to) < reach) {
            const std::size_t next = earlier ? to - 1 : to + 1;
            if (!(earlier ? mayPass(lane[next], lane[from]) : mayPass(lane[from], lane[next])))
                break;
            to = next;
        }
        if (to == from)
            continue;
        before = lane;
        const auto at = [&](std::size_t i) { return lane.begin() + static_cast<std::ptrdiff_t>(i); };
        if (to < from)
            std::rotate(at(to), at(from), at(from + 1));
        else
            std::rotate(at(from), at(from + 1), at(to + 1));
        if (lanePeak(m_model, lane) > m_model.capacity[device] || !m_times.run(lanes)) {
            lane = before;
            continue;
        }
        const double now = cost(lanes, value);
        double& old = history[static_cast<std::size_t>(change) % history.size()];
        if (now > old && now > current) {
            lane = before;
            continue;
        }
        current = now;
        old = std::min(old, current);
        if (value < bestValue || (value == bestValue && now < bestCost)) {
            best = lanes;
            bestValue = value;
            bestCost = now;
        }
        findCritical(lanes);
    }
    lanes = std::move(best);
    return bestValue;
}

} // namespace pipewright
