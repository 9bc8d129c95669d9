// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a trace is of the schedule that it is held against. Blocks of imported traces are known by their names, and
// names fit every schedule of as many stages and microbatches.
#pragma once

#include "core/predict/timeline.h"

#include <optional>

namespace pipewright {

/// Two blocks of one device: `early` had ended when `late` began, and the program has `late` first.
struct Disorder {
    int device = 0;
    TaskId early = none, late = none;
};

/// The first one, by device; none when the blocks ran in the program's order. O(tasks).
std::optional<Disorder> disorderOf(const Program& program, const Timeline& timeline);

} // namespace pipewright
