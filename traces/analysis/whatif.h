// SPDX-License-Identifier: GPL-3.0-or-later
// "What if" changes to a measured step: "F1=2ms" (every forward of stage 1), "F1.3=0.5x", "device1=0.8x" (all its
// blocks), "link0-1=50us" (every hand-off of that link, and every sum between the two), "host1=0ns" (its gaps). A value
// is a duration or a factor of what was measured.
#pragma once

#include "core/design/costs.h"
#include "traces/analysis/replay.h"

#include <string>

namespace pipewright {

struct WhatIf {
    Nanoseconds before = 0, after = 0; ///< makespans
    std::int64_t changed = 0;          ///< tasks whose time or gap is another now
};

/// Throws Error naming a change that cannot be parsed or matches no task.
WhatIf whatIf(const Program& program, const Replay& replay, const std::vector<std::string>& changes);

/// The same blocks in another order: `other` is the Program of another design with the same stages and microbatches.
/// Each block takes its measured time, a transfer the median of its link, or the time by `costs` if there is no
/// measurement. Gaps are left out; `before` is the measured order under the same assumptions. Throws Error when a block
/// was not measured.
WhatIf inOtherOrder(const Program& program, const Replay& replay, const Program& other, const Costs& costs);

} // namespace pipewright
