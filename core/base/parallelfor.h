// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a few tasks of tens of milliseconds in parallel. Without cancellation or progress; the search and the executor
// have threads of their own.
#pragma once

#include <cstddef>
#include <future>
#include <system_error>
#include <vector>

namespace pipewright {

/// Calls work(0) … work(count - 1), the first in this thread, the others in one thread each, or here when none can be
/// started. Returns when all are done; rethrows the first exception.
template<typename Work>
void parallelFor(std::size_t count, Work work)
{
    std::vector<std::future<void>> others; // their destructors join the threads
    std::size_t started = 1;
    try {
        for (; started < count; ++started)
            others.push_back(std::async(std::launch::async, [&work, started] { work(started); }));
    } catch (const std::system_error&) {
    }
    if (count > 0)
        work(0);
    for (std::size_t i = started; i < count; ++i)
        work(i);
    for (std::future<void>& other : others)
        other.get();
}

} // namespace pipewright
