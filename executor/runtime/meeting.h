// SPDX-License-Identifier: GPL-3.0-or-later
// Where the members of a group come together amid a block: none goes on before all are there. Each brings its clock and
// learns the latest.
#pragma once

#include "core/base/units.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace pipewright {

class Meeting {
public:
    explicit Meeting(int members) : m_members(members) {}

    /// Nothing when `stopped` turned true before all had come; the meeting is then of no further use. Who has to wait
    /// is told before anybody can end that, with rounds() as it is until then; the last to come never waits.
    std::optional<Nanoseconds> meet(Nanoseconds clock, const std::atomic<bool>& stopped,
                                    const std::function<void(std::uint64_t round)>& waits);
    /// How often all have come. From any thread.
    std::uint64_t rounds() const { return m_round.load(std::memory_order_seq_cst); }

private:
    const int m_members;
    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    int m_come = 0;
    std::atomic<std::uint64_t> m_round{0};
    Nanoseconds m_latest = 0, m_agreed = 0;
};

} // namespace pipewright
