// SPDX-License-Identifier: GPL-3.0-or-later
// Accumulates the metrics of one device over its tasks in their order, and combines all devices to Metrics. The sums
// are integers, so a pass may resume from any stored state with the same result.
#pragma once

#include "core/predict/bubbles.h"

#include <algorithm>
#include <limits>
#include <span>

namespace pipewright {

/// Finds a task's extra dependencies for lookups in roughly ascending order: each search begins where the last one
/// ended. O(log tasks between the two).
class ExtraCursor {
public:
    explicit ExtraCursor(const Program& program) : m_extras(program.extraDependencies) {}
    std::span<const Program::ExtraDependency> of(TaskId task);

private:
    std::span<const Program::ExtraDependency> m_extras;
    std::size_t m_at = 0;
};

struct LaneMeter {
    Nanoseconds first = std::numeric_limits<Nanoseconds>::max();
    Nanoseconds last = 0;         ///< end of the last compute block
    Nanoseconds previousEnd = -1; ///< end of the last task of any kind on this device
    Nanoseconds compute = 0;
    Nanoseconds busy = 0;
    IdleCauses causes; ///< between tasks only; not before the first and after the last

    /// A task of the device, later than those before: a block that `computes`, or an update.
    void add(const Program& program, const Timeline& timeline, TaskId task, bool computes, ExtraCursor& extras)
    {
        const Nanoseconds start = timeline.start[task], end = timeline.end[task];
        if (previousEnd >= 0 && start > previousEnd)
            addGap(program, timeline, task, extras);
        // Blocks that overlap keep the device busy once.
        const Nanoseconds added = std::max<Nanoseconds>(0, end - std::max(start, previousEnd));
        previousEnd = std::max(previousEnd, end);
        busy += added;
        first = std::min(first, start);
        if (computes) {
            last = std::max(last, end);
            compute += added;
        }
    }

private:
    /// Splits the gap before a task between computing its input, moving it, and anything else.
    void addGap(const Program& program, const Timeline& timeline, TaskId task, ExtraCursor& extras);
};

/// `begin`, `finish`: first start and last end of all tasks; `lanes`: per device of the Program. O(devices), and
/// O(samples) of the memory curves there are.
Metrics summarize(const Program& program, const Timeline& timeline, std::span<const LaneMeter> lanes, Nanoseconds begin,
                  Nanoseconds finish);

} // namespace pipewright
