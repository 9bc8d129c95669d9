// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a trace recorded the given schedule. Blocks of imported traces are matched by name, and names fit every
// schedule with as many stages and microbatches.
#pragma once

#include "core/predict/timeline.h"

#include <optional>

namespace pipewright {

/// Two blocks of one device in the wrong order: `early` ended before `late` began, but the program has `late` first.
struct Disorder {
    int device = 0;
    TaskId early = none, late = none;
};

/// The first such pair, by device; nullopt when the blocks ran in the program's order. O(tasks).
std::optional<Disorder> disorderOf(const Program& program, const Timeline& timeline);

} // namespace pipewright
