// SPDX-License-Identifier: GPL-3.0-or-later
// Makes the Program of a long schedule from that of a shortened one, by copying what repeats itself. Before that it
// makes sure that the last repetition does with tasks and buffers what the one before it did, at times, with
// dependencies and instructions that are one repetition on; and that tasks and buffers are numbered by repetitions as
// far back as anything refers to from there on. Then the state at the end of a repetition is that at its beginning,
// some microbatches further on, and so would it be after any number of them.
#pragma once

#include "core/program/program.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/steadystate.h"

#include <optional>
#include <vector>

namespace pipewright {

/// How many repetitions make one of the start times; 0: they do not repeat themselves, or not yet for as long as what
/// is live when the first device comes to the end of what repeats itself. More than one where devices wait for
/// transfers, and a round of waiting takes more than one repetition. `graph`: of the shortened schedule; `start`: per
/// block; `keepsActivations`: backwards need what forwards left behind. To know soon: it is necessary for
/// repeatSteadyState(), but not enough. O(blocks).
int repetitionsOfStarts(const OrderGraph& graph, const SteadyState& steady, const std::vector<Nanoseconds>& start,
                        bool keepsActivations);

/// `program` and `start` are of the shortened schedule. Nothing when the tasks do not repeat themselves before the
/// first device comes to the end of what does, or when there are versions of weights. O(tasks of the result).
std::optional<Program> repeatSteadyState(Program program, const ShortenedSchedule& shortened,
                                         const std::vector<Nanoseconds>& start);

} // namespace pipewright
