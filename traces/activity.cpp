// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/activity.h"

#include <array>

namespace pipewright {

std::string_view nameOf(ActivityKind kind)
{
    static constexpr std::array<std::string_view, activityKinds> names{
        "kernel",       "copy",  "memory set", "range on the device", "synchronization",
        "runtime call", "range", "operator",   "Python function",     "profiler overhead",
        "mark",         "other"};
    return names[static_cast<std::size_t>(kind)];
}

} // namespace pipewright
