// SPDX-License-Identifier: GPL-3.0-or-later
// What the tasks of one device add up to, taken one after the other in the order they run; and the Metrics that
// follow from all devices. Sums of integers, so a pass may begin wherever the state before it was kept.
#pragma once

#include "core/predict/bubbles.h"

#include <algorithm>
#include <limits>
#include <span>

namespace pipewright {

/// A task's extra dependencies, for tasks that are asked for in about their order: each search begins where the last
/// one ended. O(log tasks between the two).
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
    IdleCauses causes; ///< between tasks; what comes before the first and behind the last is not among them

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
