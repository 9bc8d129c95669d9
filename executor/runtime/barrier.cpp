// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/barrier.h"

#include <algorithm>
#include <chrono>

namespace pipewright {

std::optional<Nanoseconds> Barrier::arriveAndWait(Nanoseconds clock, const std::atomic<bool>& stopped,
                                                  const std::function<void(std::uint64_t round)>& waits)
{
    std::unique_lock lock(m_mutex);
    m_latest = m_arrived == 0 ? clock : std::max(m_latest, clock);
    if (++m_arrived == m_members) {
        m_arrived = 0;
        m_agreed = m_latest;
        ++m_round;
        m_changed.notify_all();
        return m_agreed;
    }
    constexpr auto pollInterval = std::chrono::milliseconds(20); // the longest delay until a stop is noticed
    const std::uint64_t round = m_round;
    waits(round);
    while (!m_changed.wait_for(lock, pollInterval, [&] { return m_round != round; }))
        if (stopped.load(std::memory_order_relaxed))
            return std::nullopt;
    return m_agreed;
}

} // namespace pipewright
