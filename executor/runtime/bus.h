// SPDX-License-Identifier: GPL-3.0-or-later
// A bus that emulated links share: it carries one transfer after the other, in the order in which they come. The
// predictor serves them the same way (core/predict/busqueues.h).
#pragma once

#include "executor/runtime/clock.h"

#include <algorithm>
#include <mutex>

namespace pipewright {

/// What a transfer has to do with a bus.
struct BusUse {
    int bus = -1;         ///< counted from 0; -1: its link has a wire of its own
    Nanoseconds held = 0; ///< how long it keeps others from it
    Nanoseconds wait = 0; ///< how long it waits for its turn, as predicted; for the virtual clock
};

class Bus {
public:
    /// Takes the bus for `held`, behind those that came before. Returns from when it has it, now or later.
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

} // namespace pipewright
