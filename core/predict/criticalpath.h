// SPDX-License-Identifier: GPL-3.0-or-later
// The critical path, which determines the length of the step, and the slack of each task.
#pragma once

#include "core/predict/timeline.h"

#include <vector>

namespace pipewright {

/// From the first task to the one that ends last, each starting when its predecessor ends; transfers are
/// included. Ties go to the predecessor on the same device. O(tasks on the path).
std::vector<TaskId> criticalPath(const Program& program, const Timeline& timeline);

/// What a task waits for apart from its device's order.
struct LatestInput {
    TaskId after = none;   ///< the one that ends last; none: a pin, or no dependency
    Nanoseconds ready = 0; ///< when the task may start
    bool pin = false;
};
LatestInput latestInput(const Program& program, const Timeline& timeline, TaskId task);

/// How much later each task could end without a later makespan. O(tasks), one backward pass.
std::vector<Nanoseconds> slack(const Program& program, const Timeline& timeline);

} // namespace pipewright
