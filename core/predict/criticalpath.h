// SPDX-License-Identifier: GPL-3.0-or-later
// The critical path, which determines the length of the step, and the slack of each task.
#pragma once

#include "core/predict/timeline.h"

#include <vector>

namespace pipewright {

/// From the first task to the one that ends last, each starting when its predecessor ends; transfers are
/// included. Ties go to the predecessor on the same device. O(tasks on the path).
std::vector<TaskId> criticalPath(const Program& program, const Timeline& timeline);

/// How much later each task could end without a later makespan. O(tasks), one backward pass.
std::vector<Nanoseconds> slack(const Program& program, const Timeline& timeline);

} // namespace pipewright
