// SPDX-License-Identifier: GPL-3.0-or-later
// A bus that emulated links share: it carries one transfer after another, in order of arrival. The predictor serves
// transfers the same way (core/predict/busqueues.h).
#pragma once

#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace pipewright {

/// How a transfer, or a sum of gradients, uses buses.
struct BusUse {
    int bus = -1;             ///< counted from 0; -1: its link has a wire of its own
    Nanoseconds held = 0;     ///< how long it occupies the bus
    int back = -1;            ///< for a sum whose way back uses another bus: that bus
    Nanoseconds heldBack = 0; ///< how long it occupies `back`
    Nanoseconds wait = 0;     ///< how long it waits for its turn, as predicted; for the virtual clock
};

class Bus {
public:
    /// Reserves one or two buses together; either may be null. Returns when the reservation begins.
    static Nanoseconds takeBoth(Bus* bus, Nanoseconds held, Bus* other, Nanoseconds heldOther)
    {
        if (bus == nullptr)
            std::swap(bus, other), std::swap(held, heldOther);
        if (bus == nullptr)
            return steadyNow();
        if (other == nullptr)
            return bus->take(held);
        const std::scoped_lock lock(bus->m_mutex, other->m_mutex);
        const Nanoseconds start = std::max({steadyNow(), bus->m_freeFrom, other->m_freeFrom});
        bus->m_freeFrom = start + held;
        other->m_freeFrom = start + heldOther;
        return start;
    }

    /// Reserves the bus for `held`, after earlier reservations. Returns when the reservation begins, now or later.
    Nanoseconds take(Nanoseconds held)
    {
        const std::lock_guard lock(m_mutex);
        const Nanoseconds start = std::max(steadyNow(), m_freeFrom);
        m_freeFrom = start + held;
        return start;
    }

private:
    std::mutex m_mutex;
    Nanoseconds m_freeFrom = 0;
};

/// Lets the two devices of a sum begin together: the first to arrive reserves the buses for both.
class SumTurns {
public:
    /// When the task's reservation of its buses begins; both calls for one task return the same.
    Nanoseconds take(std::uint32_t task, Bus* bus, Nanoseconds held, Bus* other, Nanoseconds heldOther)
    {
        const std::lock_guard lock(m_mutex);
        if (const auto taken = m_taken.find(task); taken != m_taken.end()) {
            const Nanoseconds start = taken->second;
            m_taken.erase(taken);
            return start;
        }
        return m_taken[task] = Bus::takeBoth(bus, held, other, heldOther);
    }
    /// Forgets the reservations of a step that was broken off.
    void clear()
    {
        const std::lock_guard lock(m_mutex);
        m_taken.clear();
    }

private:
    std::mutex m_mutex;
    std::map<std::uint32_t, Nanoseconds> m_taken;
};

} // namespace pipewright
