// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/corewait.h"

#include <array>
#include <charconv>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace pipewright {

Nanoseconds waitedForCore()
{
    // The file has "time on a core, time waiting for one, number of time slices", times in nanoseconds. Device threads
    // call this between steps, where nothing may be allocated.
    const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    std::array<char, 128> text{};
    const ssize_t length = ::read(file, text.data(), text.size());
    ::close(file);
    Nanoseconds ran = 0, waited = 0;
    const char* const end = text.data() + (length > 0 ? length : 0);
    const auto [space, wrong] = std::from_chars(text.data(), end, ran);
    if (wrong != std::errc() || space == end)
        return -1;
    return std::from_chars(space + 1, end, waited).ec == std::errc() ? waited : -1;
}

} // namespace pipewright
