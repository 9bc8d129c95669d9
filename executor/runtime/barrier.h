// SPDX-License-Identifier: GPL-3.0-or-later
// A barrier for the members of a group, inside a block: no member continues before all have arrived. Each brings its
// clock and gets the latest one. Unlike std::barrier it can be stopped, and it says which member waits in which round.
#pragma once

#include "core/base/units.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace pipewright {

class Barrier {
public:
    explicit Barrier(int members) : m_members(members) {}

    /// Waits for the other members and returns the latest clock; nothing when `stopped` became true first, after which
    /// the barrier must not be used again. Calls `waits` with the present round if the caller has to wait, before the
    /// others can complete that round; the last member to arrive never waits.
    std::optional<Nanoseconds> arriveAndWait(Nanoseconds clock, const std::atomic<bool>& stopped,
                                             const std::function<void(std::uint64_t round)>& waits);
    int members() const { return m_members; }
    /// How many rounds are complete. From any thread.
    std::uint64_t rounds() const { return m_round.load(std::memory_order_seq_cst); }

private:
    const int m_members;
    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    int m_arrived = 0;
    std::atomic<std::uint64_t> m_round{0};
    Nanoseconds m_latest = 0, m_agreed = 0;
};

} // namespace pipewright
