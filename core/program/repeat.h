// SPDX-License-Identifier: GPL-3.0-or-later
// Makes the Program of a long schedule from that of a shortened one, by copying what repeats itself. Before that it
// makes sure that the tasks do repeat themselves, with their times, operands, dependencies and instructions, as
// far back as anything later refers to. Then the state at the end of a repetition is that at its beginning, some
// microbatches further on, and so would it be after any number of them.
#pragma once

#include "core/program/program.h"
#include "core/schedule/steadystate.h"

#include <optional>
#include <vector>

namespace pipewright {

/// Do the blocks start one repetition after those of the repetition before, on all devices and for `repetitions`
/// of them, when the first device comes to the end of what repeats itself? `start`: per block of the shortened
/// schedule, device after device. To know soon: it is necessary for repeatSteadyState(), but not enough. O(blocks).
bool startsRepeat(const ShortenedSchedule& shortened, const std::vector<Nanoseconds>& start, int repetitions);

/// `program` and `start` are of the shortened schedule. Nothing when the tasks do not repeat themselves before the first
/// device comes to the end of what does, or when there are versions of weights. O(tasks of the result).
std::optional<Program> repeatSteadyState(const Program& program, const ShortenedSchedule& shortened, const std::vector<Nanoseconds>& start);

} // namespace pipewright
