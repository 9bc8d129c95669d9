// SPDX-License-Identifier: GPL-3.0-or-later
// Overlapped pairs in a Program: two Compute tasks of one device that start and end together. They stay two
// tasks, each with its own buffers and row in a trace, tied by dependencies that every pass over the Program
// already follows.
#pragma once

#include "core/program/program.h"

#include <vector>

namespace pipewright {

/// Lets the first of each pair wait for what the second waits for, and the second start no earlier than the
/// first. Sorts Program::overlaps, and extraDependencies by task. O(pairs log dependencies).
void joinOverlaps(Program& program);

/// Adds the order that the schedule states for the pair to Program::partOrders and returns its index; none when none is
/// stated.
std::uint32_t partOrderOf(const Schedule& schedule, const Overlap& pair, Program& program);

/// The task that overlaps with `first` when that is the first of a pair, else none. O(log pairs).
TaskId overlapsWith(const Program& program, TaskId first);

/// For each task the other one of its pair, none where there is none; empty when nothing overlaps. O(tasks).
std::vector<TaskId> overlapPartners(const Program& program);

} // namespace pipewright
