// SPDX-License-Identifier: GPL-3.0-or-later
// Start and end of every task of a Program, and the memory curve of every device. A prediction and a
// measurement are this same type with the same task ids; comparing them is a subtraction.
#pragma once

#include "core/program/program.h"

#include <functional>
#include <vector>

namespace pipewright {

inline constexpr Nanoseconds notRun = -1; ///< start of a task that a measurement has no record of

struct Timeline {
    std::vector<Nanoseconds> start; ///< per task, from the beginning of the step
    std::vector<Nanoseconds> end;
    std::vector<std::vector<MemorySample>> memory; ///< per device, by time; empty when not recorded
    bool operator==(const Timeline&) const = default;
};

Nanoseconds firstStart(const Timeline& timeline); ///< 0 where nothing ran

/// Memory curves, device by device.
using CurveOf = std::function<std::vector<MemorySample>(int device)>;

/// When a device issues its instructions: sends, receives and frees as soon as its last block has ended, the
/// second of an overlapped pair at once behind the first.
class IssueClock {
public:
    /// Keeps references to both. Instructions are asked for in the order of the device's list.
    IssueClock(const Program& program, const Timeline& timeline) : m_program(program), m_timeline(timeline) {}
    Nanoseconds next(const Instruction& instruction);
    Nanoseconds now() const { return m_now; } ///< after the instruction asked for last

private:
    const Program& m_program;
    const Timeline& m_timeline;
    Nanoseconds m_now = 0, m_pairEnd = 0;
};

/// The memory curve that follows from a Program's instruction lists at the given times.
/// O(instructions of the device).
std::vector<MemorySample> memoryCurve(const Program& program, const Timeline& timeline, int device);
/// The same of a device whose lists are not in the Program.
std::vector<MemorySample> memoryCurve(const Program& program, const Timeline& timeline, const Program::Device& device);

} // namespace pipewright
