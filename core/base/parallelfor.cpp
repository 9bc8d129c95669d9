// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/parallelfor.h"

#include <future>
#include <system_error>
#include <vector>

namespace pipewright {

void parallelFor(std::size_t count, const std::function<void(std::size_t)>& work)
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
