// SPDX-License-Identifier: GPL-3.0-or-later
// The part of a Program that times and metrics follow from: its tasks and what they wait for, without operands, buffers
// and instruction lists, which take three quarters of its memory. Where a long schedule repeats itself the shortened
// Program (repeat.h) is whole, and of its steady state only the tasks are copied; elsewhere the lists are left out. The
// lists of one device at a time can be asked for.
#pragma once

#include "core/program/compile.h"

#include <functional>
#include <optional>
#include <vector>

namespace pipewright {

/// What buffers are needed for.
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

/// Called with the whole shortened Program; gives what each of its tasks amounts to, or nothing to go without an
/// outline. A repetition's tasks amount to what those of the one before do.
using AmountsOf = std::function<std::vector<TaskAmounts>(const Program&)>;

/// Nothing where the schedule does not repeat itself, or cannot run: compile() it. O(blocks), about 100 bytes each.
std::optional<Outline> compileOutline(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow,
                                      const AmountsOf& amountsOf);

/// Of any schedule: a Program without instruction lists and live bytes. Operands and buffers, some 70 bytes a block,
/// are there; without them no more lists can be asked for. Throws as compile(). O(blocks).
struct WithoutLists {
    Program program;
    ListsOf listsOf;
};
WithoutLists compileWithoutLists(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow);

} // namespace pipewright
