// SPDX-License-Identifier: GPL-3.0-or-later
// Makes the Program of a long schedule from that of a shortened one, by copying the repetitions of its steady state.
// First checks that the last repetition of the shortened Program equals the one before it in tasks, buffers, times,
// dependencies and instructions, except for a shift by one repetition, and that all numbers shift in the same way back
// to the oldest task that this part refers to. Then the state after a repetition is the state before it, some
// microbatches later, and by induction any number of repetitions may be inserted.
//
// Worth its 850 lines, with outline.h and steadystate, for the largest designs only; figures are with it and without,
// release. Commands on zb-h1 of 64 devices: 200,000 blocks predict 0.05 and 0.08 s, check 0.05 and 0.09 s; a million
// 0.22 and 0.44 s, 0.22 and 0.47 s, in as much memory. On 8.4 million blocks of 1f1b predict takes 1.7 and 4.1 s, 182
// and 205 bytes a block, and the Perfetto export 182 and 275 bytes. Generating and compiling 64 devices x 1,024
// microbatches takes zb-h1 7 and 25 ms, v-half 27 and 64 ms, seq1f1b (four pieces) 26 and 96 ms (generateAndCompile in
// tests/bench/bench_evaluate.cpp). Up to 200,000 blocks nobody notices it, and a schedule that was edited inside its
// steady state cannot use it.
#pragma once

#include "core/program/outline.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/steadystate.h"

#include <optional>
#include <vector>

namespace pipewright {

/// The period of the start times, in repetitions of the order; 0 when they do not repeat, or not over the lifetime of
/// the values that are needed when the first device leaves the steady state. More than 1 where devices wait for
/// transfers in a pattern that takes several repetitions. `graph`: of the shortened schedule; `start`: per block;
/// `keepsActivations`: backwards need what their forwards kept. A quick test: necessary for repeatSteadyState(), not
/// sufficient. O(blocks).
int repetitionsOfStarts(const OrderGraph& graph, const SteadyState& steady, const std::vector<Nanoseconds>& start,
                        bool keepsActivations);

/// `program` and `start` are of the shortened schedule. Nothing when its last two repetitions differ, or with weight
/// versions. O(tasks of the result).
std::optional<Program> repeatSteadyState(Program program, const ShortenedSchedule& shortened,
                                         const std::vector<Nanoseconds>& start);

/// The same as an Outline. Nothing also when `amountsOf` returns nothing.
std::optional<Outline> repeatOutline(Program program, const ShortenedSchedule& shortened,
                                     const std::vector<Nanoseconds>& start, const AmountsOf& amountsOf);

} // namespace pipewright
