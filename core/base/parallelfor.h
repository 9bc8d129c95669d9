// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a few tasks of tens of milliseconds in parallel. Without cancellation or progress; the search and the executor
// have threads of their own.
#pragma once

#include <cstddef>
#include <functional>

namespace pipewright {

/// Calls work(0) … work(count - 1), the first in this thread, the others in one thread each, or here when none can be
/// started. Returns when all are done; rethrows the first exception.
void parallelFor(std::size_t count, const std::function<void(std::size_t)>& work);

} // namespace pipewright
