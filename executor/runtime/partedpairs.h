// SPDX-License-Identifier: GPL-3.0-or-later
// Runs overlapped pairs with parts on a host: compute parts on the device's own thread, communication parts on a second
// one, each thread in the order in which the pair issues its parts. A part starts when the last awaited part before it
// in its block is done. These are the rules of core/program/partorder.h.
#pragma once

#include "core/program/pairtimes.h"

#include <functional>
#include <map>

namespace pipewright {

/// The pairs in which at least one block has parts, by their first task. O(pairs), with a plan for each.
std::map<TaskId, PairTimes::Plan> partedPairs(const Program& program, const Costs& costs);

/// Calls `doPart(block, part)` for every part, block 0 being the first, from the calling thread and one other at the
/// same time; returns when all are done. `doPart` must return soon once the run is stopped.
void runParts(const PairTimes::Plan& plan, const std::function<void(std::size_t, std::size_t)>& doPart);

} // namespace pipewright
