// SPDX-License-Identifier: GPL-3.0-or-later
// The real clock of the executor: monotonic, shared by all threads of the machine (CLOCK_MONOTONIC). Runs that keep
// logical time instead use virtualclock.h.
#pragma once

#include "core/base/units.h"

#include <chrono>

namespace pipewright {

inline Nanoseconds steadyNow()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

} // namespace pipewright
