// SPDX-License-Identifier: GPL-3.0-or-later
// Start and end of every task of a Program, and the memory curve of every device. A prediction and a
// measurement are this same type with the same task ids; comparing them is a subtraction.
#pragma once

#include "core/program/program.h"

#include <vector>

namespace pipewright {

inline constexpr Nanoseconds notRun = -1; ///< start of a task that a measurement has no record of

struct Timeline {
    std::vector<Nanoseconds> start; ///< per task, from the beginning of the step
    std::vector<Nanoseconds> end;
    std::vector<std::vector<MemorySample>> memory; ///< per device, by time; empty when not recorded
    bool operator==(const Timeline&) const = default;
};

/// The memory curve that follows from a Program's instruction lists at the given times.
/// O(instructions of the device).
std::vector<MemorySample> memoryCurve(const Program& program, const Timeline& timeline, int device);

} // namespace pipewright
