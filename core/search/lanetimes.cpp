// SPDX-License-Identifier: GPL-3.0-or-later
// Earliest start times of fixed lanes: a worklist of runnable devices; a device that needs a missing value is parked in
// that task's list of waiters. O(tasks).
#include "core/search/searchmodel.h"

#include <algorithm>

namespace pipewright {

LaneTimes::LaneTimes(const SearchModel& model)
    : m_model(model), m_start(model.tasks.size()), m_end(model.tasks.size()), m_done(model.tasks.size()),
      m_next(model.devices), m_waiter(model.tasks.size()), m_nextWaiter(model.devices), m_sequence(model.tasks.size()),
      m_free(model.devices)
{
    m_runnable.reserve(model.devices);
}

bool LaneTimes::run(const Lanes& lanes)
{
    std::fill(m_done.begin(), m_done.end(), std::uint8_t{0});
    std::fill(m_waiter.begin(), m_waiter.end(), -1);
    std::fill(m_next.begin(), m_next.end(), 0u);
    std::fill(m_free.begin(), m_free.end(), Nanoseconds{0});
    m_runnable.clear();
    for (std::size_t d = lanes.size(); d-- > 0;)
        m_runnable.push_back(static_cast<std::int32_t>(d));
    const bool extras = !m_model.extras.empty();
    std::size_t ran = 0;
    while (!m_runnable.empty()) {
        const std::size_t d = m_runnable.back();
        m_runnable.pop_back();
        const std::vector<std::int32_t>& lane = lanes[d];
        for (std::uint32_t& i = m_next[d]; i < lane.size(); ++i) {
            const std::size_t id = lane[i];
            const SearchTask& task = m_model.tasks[id];
            Nanoseconds start = std::max(m_free[d], task.earliest);
            std::int32_t missing = -1;
            const auto wait = [&](std::int32_t input, Nanoseconds delay) {
                if (m_done[input] == 0)
                    missing = input;
                else
                    start = std::max(start, m_end[input] + delay);
            };
            if (task.input >= 0)
                wait(task.input, task.delay);
            if (missing < 0 && task.local >= 0)
                wait(task.local, 0);
            if (extras && missing < 0)
                for (const ExtraInput& extra : m_model.extrasOf(lane[i])) {
                    wait(extra.input, extra.delay);
                    if (missing >= 0)
                        break;
                }
            if (missing >= 0) {
                m_nextWaiter[d] = m_waiter[missing];
                m_waiter[missing] = static_cast<std::int32_t>(d);
                break;
            }
            m_start[id] = start;
            m_free[d] = m_end[id] = start + task.duration;
            m_done[id] = 1;
            m_sequence[ran++] = lane[i];
            for (std::int32_t w = m_waiter[id]; w >= 0; w = m_nextWaiter[w])
                m_runnable.push_back(w);
        }
    }
    m_work += static_cast<std::int64_t>(ran);
    return ran == m_model.tasks.size();
}

Nanoseconds LaneTimes::value(const Lanes& lanes, SearchObjective objective, Nanoseconds* sum) const
{
    // The step begins with its first block, which a pin may delay.
    Nanoseconds value = 0, total = 0, begin = 0;
    if (objective == SearchObjective::Makespan) {
        begin = SearchModel::noCapacity;
        for (const std::vector<std::int32_t>& lane : lanes)
            if (!lane.empty())
                begin = std::min(begin, m_start[lane.front()]);
    }
    for (std::size_t d = 0; d < lanes.size(); ++d) {
        if (lanes[d].empty())
            continue;
        const Nanoseconds end = m_end[lanes[d].back()];
        const Nanoseconds own =
            (objective == SearchObjective::Span ? end - m_start[lanes[d].front()] : end - begin + m_model.updates[d])
            - m_model.lead(objective, static_cast<int>(d));
        value = std::max(value, own);
        total += own;
    }
    if (sum != nullptr)
        *sum = total;
    return value;
}

Bytes lanePeak(const SearchModel& model, const std::vector<std::int32_t>& lane)
{
    Bytes live = 0, peak = 0;
    for (const std::int32_t id : lane) {
        const SearchTask& task = model.tasks[id];
        live += task.taken;
        peak = std::max(peak, live + task.passing);
        live -= task.freed;
    }
    return peak;
}

bool lanesAllowed(const SearchModel& model, const Lanes& lanes)
{
    std::vector<std::uint8_t> ran(model.tasks.size(), 0);
    for (std::size_t d = 0; d < lanes.size(); ++d) {
        if (lanePeak(model, lanes[d]) > model.capacity[d])
            return false;
        for (const std::int32_t id : lanes[d]) {
            const SearchTask& task = model.tasks[id];
            if ((task.local >= 0 && ran[task.local] == 0) || (task.lockedAfter >= 0 && ran[task.lockedAfter] == 0))
                return false;
            ran[id] = 1;
        }
    }
    return true;
}

} // namespace pipewright
