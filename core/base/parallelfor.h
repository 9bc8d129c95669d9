// SPDX-License-Identifier: GPL-3.0-or-later
// A few pieces of work at once, for what takes tens of milliseconds. Not for work that a person may want to
// cancel or watch: that is the search's and the executor's, which keep threads of their own.
#pragma once

#include <cstddef>
#include <future>
#include <system_error>
#include <vector>

namespace pipewright {

/// Calls work(0) … work(count - 1), the first in this thread and each of the others in one of its own, or here as
/// well where the system has no thread to give. Returns when all are done; throws what the first to fail threw.
template<typename Work>
void parallelFor(std::size_t count, Work work)
{
    std::vector<std::future<void>> others; // each waits for its thread when it goes
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
