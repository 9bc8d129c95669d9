// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/activity.h"

#include <array>

namespace pipewright {

bool runsOnDevice(ActivityKind kind)
{
    switch (kind) {
    case ActivityKind::Kernel:
    case ActivityKind::Memcpy:
    case ActivityKind::Memset: return true;
    case ActivityKind::GpuRange:
    case ActivityKind::Synchronization:
    case ActivityKind::Runtime:
    case ActivityKind::Range:
    case ActivityKind::Operator:
    case ActivityKind::Python:
    case ActivityKind::Overhead:
    case ActivityKind::Mark:
    case ActivityKind::Other: break;
    }
    return false;
}

std::string_view nameOf(ActivityKind kind)
{
    static constexpr std::array<std::string_view, activityKinds> names{
        "kernel",       "copy",  "memory set", "range on the device", "synchronization",
        "runtime call", "range", "operator",   "Python function",     "profiler overhead",
        "mark",         "other"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view withoutScope(std::string_view name)
{
    constexpr std::string_view step = "ProfilerStep#", anonymous = "(anonymous namespace)", result = "void ";
    if (name.starts_with(step))
        return name.substr(step.find("Step"));
    const std::size_t first = name.starts_with(result) ? result.size() : 0;
    std::size_t begin = first;
    for (std::size_t i = first; i < name.size(); ++i) {
        if (name.substr(i).starts_with(anonymous)) {
            i += anonymous.size() - 1;
        } else if (name[i] == '<' || name[i] == '(') {
            return name.substr(begin);
        } else if (name.substr(i).starts_with("::")) {
            begin = i + 2;
        }
    }
    return name; // not a C++ function, such as "aten::add"
}

} // namespace pipewright
