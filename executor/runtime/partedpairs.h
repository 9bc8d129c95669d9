// SPDX-License-Identifier: GPL-3.0-or-later
// Overlapped pairs with parts on a host: what computes on the device's own thread, what communicates on a second one,
// each in the order in which the pair issues its parts, and a part once the last awaited one before it in its block is
// done: the rules of core/program/partorder.h.
#pragma once

#include "core/program/pairtimes.h"

#include <functional>
#include <map>

namespace pipewright {

/// The pairs of which one block at least has parts, by their first task. O(pairs), with a plan for each.
std::map<TaskId, PairTimes::Plan> partedPairs(const Program& program, const Costs& costs);

/// Calls `doPart(block, part)` for every part, block 0 being the first, from the calling thread and from one other at
/// the same time; returns when all are done. `doPart` must come back soon where the run has been stopped.
void runParts(const PairTimes::Plan& plan, const std::function<void(std::size_t, std::size_t)>& doPart);

} // namespace pipewright
