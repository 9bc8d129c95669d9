// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of a design that a measured step has no times of: records were dropped, a rank's trace is missing, a profiler
// began late. Whatever is said of such a step says so first.
#pragma once

#include "core/base/diagnostic.h"
#include "core/predict/timeline.h"

#include <string>
#include <vector>

namespace pipewright {

/// In the program's order. O(tasks).
std::vector<TaskId> missingBlocks(const Program& program, const Timeline& measured);

/// A warning that counts and names them; empty when there are none. `trace` and `step` as they are shown: "run.db",
/// "step 3".
Diagnostics warningOfMissing(const Program& program, const Timeline& measured, const std::string& trace,
                             const std::string& step);

} // namespace pipewright
