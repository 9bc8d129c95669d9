// SPDX-License-Identifier: GPL-3.0-or-later
// The part of a Program that determines times and metrics: its tasks and their dependencies, without operands, buffers
// and instruction lists, which take three quarters of its memory. For a long schedule that repeats itself, the
// shortened Program (repeat.h) is complete and only the tasks of its steady state are copied; for other schedules the
// lists are left out. The lists can be requested for one device at a time.
#pragma once

#include "core/program/compile.h"

#include <functional>
#include <optional>
#include <vector>

namespace pipewright {

/// The numbers of a task that are derived from its buffers.
struct TaskAmounts {
    Nanoseconds duration = 0;
    Bytes moved = 0; ///< by a transfer
};

/// A device of the outline with its instructions and live bytes, in O(tasks + buffers) at most. `program`: the
/// outline's.
using ListsOf = std::function<Program::Device(const Program& program, int device)>;

struct Outline {
    Program program;                  ///< no operands, buffers, instructions and live bytes; devices have their peaks
    std::vector<TaskAmounts> amounts; ///< per task
    ListsOf listsOf;
};

/// Called with the complete shortened Program; returns the amounts of its tasks, or nothing to refuse the outline.
/// Copied repetitions have the amounts of the one before.
using AmountsOf = std::function<std::vector<TaskAmounts>(const Program&)>;

/// Nothing when the schedule does not repeat itself or cannot run: use compile() then. O(blocks), about 100 bytes each.
std::optional<Outline> compileOutline(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow,
                                      const AmountsOf& amountsOf);

/// For any schedule: a Program without instruction lists and live bytes. It has operands and buffers, about 70 bytes a
/// block, which listsOf needs. Throws as compile(). O(blocks).
struct WithoutLists {
    Program program;
    ListsOf listsOf;
};
WithoutLists compileWithoutLists(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow);

} // namespace pipewright
