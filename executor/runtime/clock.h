// SPDX-License-Identifier: GPL-3.0-or-later
// The one clock of the executor: monotonic, shared by all threads of the machine (CLOCK_MONOTONIC).
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
